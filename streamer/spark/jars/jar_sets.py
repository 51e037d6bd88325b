"""Sets of jars that PySpark does not bring: where one is looked for, and how it is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.spark.jars.ivy import FetchError, fetch_jars
from streamer.spark.jars.jar_directories import (
    JARS_VARIABLE,
    Modules,
    find_jars,
    user_jar_directory,
    with_jars,
)

SHARED_DIRECTORY: Final = Path("/opt/streamer")
"""The machine's directory of sets; it need not be there."""

_USER_JAR_SETTINGS: Final = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


@dataclass(frozen=True)
class JarSet:
    """Jars with which Spark reaches one kind of store.

    Attributes:
        directory: the name of the set's directory.
        place: the store, in words.
        main: the artifact by which a user's own jars are recognised.
        modules: what is needed.
        sums: the SHA-256 of each file.
        pom: names the same jars for Maven.
    """

    directory: str
    place: str
    main: str
    modules: Modules
    sums: Mapping[str, str]
    pom: str


def jar_settings(
    jars: JarSet,
    conf: Mapping[str, str],
    environ: Mapping[str, str],
    log: LogLine,
    directory: str | None = None,
    shared: Path | None = None,
) -> dict[str, str]:
    """Return the settings by which Spark has a set of jars.

    Args:
        jars: the set.
        conf: the user's Spark settings. Where they name the main jar among the jars, these are the
            user's; other jars are kept.
        environ: has `STREAMER_JARS`, a directory of jars, and where caches are kept.
        log: takes level, text and fields; called when jars are fetched.
        directory: the config's `jars_directory`.
        shared: the machine's directory of these jars, which need not be there.

    Returns:
        Settings to put over `conf`; none when the user sees to it.

    Raises:
        StreamerError: no directory has the jars, and they cannot be fetched.
    """
    if any(jars.main in conf.get(key, "") for key in _USER_JAR_SETTINGS):
        return {}
    own = user_jar_directory(environ) / jars.directory
    named_directories = [Path(place) for place in (environ.get(JARS_VARIABLE), directory) if place]
    shared = shared or SHARED_DIRECTORY / jars.directory
    candidates = (find_jars(one, jars.modules)[0] for one in (*named_directories, shared, own))
    files = next(filter(None, candidates), None) or _fetch_set(jars, own, conf, environ, log)
    return with_jars(conf, files)


def _fetch_set(
    jars: JarSet, own: Path, conf: Mapping[str, str], environ: Mapping[str, str], log: LogLine
) -> list[Path]:
    modules = [(group, name, version) for name, (group, version) in jars.modules.items()]
    log("INFO", f"Fetching the jars with which Spark reaches {jars.place}", {"into": str(own)})
    try:
        fetch_jars(modules, own, conf, environ, log, sums=jars.sums)
    except FetchError as e:
        command = f"mvn -f {jars.pom} dependency:copy-dependencies -DoutputDirectory={own}"
        raise StreamerError(
            f"The checkpoint is in {jars.place}, for which Spark needs jars that PySpark does not "
            f"bring, and they could not be fetched: {e}. Fetch them with Maven: {command}. Or name "
            "a repository that has them in spark.conf: spark.jars.repositories."
        ) from e
    files, lacking = find_jars(own, jars.modules)
    if lacking:
        raise StreamerError(f"{own} {lacking} though it was fetched: is somebody deleting there?")
    return files
