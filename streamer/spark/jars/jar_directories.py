"""Directories of jars that PySpark does not bring, and what of them is there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

Modules = Mapping[str, tuple[str, str]]
"""Jars as Maven names them: the artifact, its group and the version that is fetched."""

JARS_VARIABLE = "STREAMER_JARS"


def user_jar_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory where jars that were fetched are kept for this user."""
    caches = environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "streamer" / "jars"


def find_jars(directory: Path, needed: Modules) -> tuple[list[Path], str]:
    """Return a directory's jars, and what it lacks in words; of two versions the newer counts.

    Args:
        directory: the directory.
        needed: the jars, by their artifacts' names.
    """
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return [], "is not there"
    except OSError as e:
        return [], f"cannot be read ({e.strerror})"
    best: dict[str, tuple[list[int], str]] = {}
    pattern = _jar_name_pattern(needed)
    for name in names:
        match = pattern.fullmatch(name)
        if match is not None:
            version = [int(number) for number in re.findall(r"\d+", match[2])]
            best[match[1]] = max((version, name), best.get(match[1], ([], "")))
    lacking = [name for name in needed if name not in best]
    if lacking:
        return [], "has none of them" if len(lacking) == len(needed) else (
            f"lacks {', '.join(lacking)}"
        )
    return [directory.absolute() / best[name][1] for name in needed], ""


def with_jars(conf: Mapping[str, str], jars: Iterable[Path]) -> dict[str, str]:
    """Return the setting that adds jars to those that Spark's settings name already."""
    others = [conf["spark.jars"]] if conf.get("spark.jars") else []
    return {"spark.jars": ",".join([*others, *map(str, jars)])}


def _jar_name_pattern(needed: Modules) -> re.Pattern[str]:
    # Names of jars may have the group before them, as Spark's own downloads do.
    return re.compile(
        r"(?:[\w.-]+_)?({})-(\d[\w.-]*)\.jar".format("|".join(map(re.escape, needed)))
    )
