"""A new package with one component: its files, for `streamer create --component`."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Final

from streamer.components.component_names import COMPONENTS
from streamer.core.entry_points import GROUP
from streamer.core.errors import StreamerError
from streamer.core.extras import DISTRIBUTION
from streamer.sdk.api_version import API_VERSION
from streamer.sdk.spec import Kind

_TEMPLATES: Final = Path(__file__).with_name("package_templates")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,59}")
_SUFFIX: Final = ".txt"

PACKAGE_KINDS: Final = (
    Kind.INPUT,
    Kind.PROCESSOR,
    Kind.OUTPUT,
    Kind.CACHE,
    Kind.RATE_LIMIT,
    Kind.METRICS,
    Kind.TRACER,
)
"""The kinds of which there is a template."""


def make_package_files(kind: Kind, name: str) -> dict[str, str]:
    """Return the files of a package with one component, by their paths in it.

    Args:
        kind: one of `PACKAGE_KINDS`.
        name: the component's name, as configs have it.

    Raises:
        StreamerError: the name is none, or one of ours.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise StreamerError(
            f"the component is named {name!r}; expected small letters, digits and _, such as "
            "my_name"
        )
    if name in COMPONENTS[kind]:
        raise StreamerError(f"streamer has a {kind} {name!r} itself; choose another name")
    words = {
        "name": name,
        "kind": str(kind),
        "package": f"streamer_{name}",
        "distribution": f"streamer-{name.replace('_', '-')}",
        "class_name": "".join(word.capitalize() for word in name.split("_")),
        "group": GROUP,
        "streamer": DISTRIBUTION,
        "api_version": API_VERSION,
        "config": _fill_template(f"{kind}.yaml", {"name": name}),
    }
    paths = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        "config.yaml": f"{kind}.yaml",
        f"src/{words['package']}/__init__.py": "init.py",
        f"src/{words['package']}/{name}.py": f"{kind}.py",
        f"tests/test_{name}.py": f"test_{kind}.py",
    }
    return {path: _fill_template(template, words) for path, template in paths.items()}


def write_package(directory: Path, kind: Kind, name: str) -> list[Path]:
    """Write a package with one component; return the files.

    Args:
        directory: the package's, which must not exist or be empty.
        kind: one of `PACKAGE_KINDS`.
        name: the component's name.

    Raises:
        StreamerError: the directory has files already, cannot be written, or the name is none.
    """
    files = make_package_files(kind, name)
    try:
        if directory.exists() and any(directory.iterdir()):
            raise StreamerError(f"{directory} has files already; name another directory")
        written = []
        for path, text in files.items():
            place = directory / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
            written.append(place)
    except OSError as error:
        text = (error.strerror or str(error)).lower()
        raise StreamerError(f"{directory} cannot be written: {text}") from None
    return written


def _read_template(name: str) -> str:
    return (_TEMPLATES / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def _fill_template(name: str, words: Mapping[str, str]) -> str:
    return Template(_read_template(name)).substitute(words)
