"""Checks of what is installed: Python, packages and their versions, extras, jars."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from streamer import __version__
from streamer.core.extras import (
    DISTRIBUTION,
    EXTRA_OF,
    EXTRAS,
    install_command,
    is_installed,
)
from streamer.tools.doctor.diagnosis import Diagnosis, Severity

_CHECKED: Final = ("pyspark", "pyarrow", "pandas", "numpy", "protobuf")
"""Packages whose versions Spark's Python is particular about."""
_MIN_PYTHON: Final = (3, 11)
_REQUIREMENT: Final = re.compile(r"([\w.-]+)\s*\(?([^;)]*)")


def check_versions(find: Callable[[str], str] = version) -> Iterator[Diagnosis]:
    """Compare the versions of Python and of packages with those that streamer was built for.

    Args:
        find: gives the version of a distribution that is installed.
    """
    python = platform.python_version()
    detail = f"{__version__}, Python {python} at {sys.executable}"
    if sys.version_info < _MIN_PYTHON:
        yield Diagnosis("streamer", Severity.ERROR, detail, "install Python 3.11 or newer")
    else:
        yield Diagnosis("streamer", Severity.OK, detail)
    bounds = _read_bounds()
    for name in _CHECKED:
        bounds_text = bounds.get(name, "")
        remedy = f"pip install '{name}{bounds_text}'"
        try:
            installed = find(name)
        except PackageNotFoundError:
            yield Diagnosis(name, Severity.ERROR, "not installed", remedy)
            continue
        if _is_within(installed, bounds_text):
            yield Diagnosis(name, Severity.OK, installed)
        else:
            yield Diagnosis(name, Severity.ERROR, f"{installed}; expected {bounds_text}", remedy)


def _read_bounds() -> Mapping[str, str]:
    """Return the versions that the distribution asks for, by the name of the package."""
    try:
        lines = requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # it runs from its source
        return {}
    matches = (_REQUIREMENT.match(line) for line in lines if "extra ==" not in line)
    return {match[1].lower(): match[2].strip().replace(" ", "") for match in matches if match}


def _is_within(installed: str, bounds: str) -> bool:
    """Return whether a version is within bounds such as `>=4.3.0,<4.4`."""
    number = _parse_version(installed)
    for bound in filter(None, bounds.split(",")):
        operator = re.match(r"[<>=!~]+", bound)
        limit = _parse_version(bound[operator.end() :] if operator else bound)
        ok = {
            ">=": number >= limit,
            "<": number < limit,
            ">": number > limit,
            "<=": number <= limit,
            "==": number == limit,
        }.get(operator[0] if operator else "", True)
        if not ok:
            return False
    return True


def _parse_version(text: str) -> tuple[int, ...]:
    parts = re.match(r"[\d.]*", text)
    numbers = [int(part) for part in (parts[0] if parts else "").split(".") if part]
    return tuple([*numbers, 0, 0, 0][:3])


def check_extras(has: Callable[[str], bool] = is_installed) -> Iterator[Diagnosis]:
    """Check the packages of each extra; one that is not there is no error, unless a config says so.

    Args:
        has: whether a package is installed, by the name that is imported.
    """
    for extra, purpose in EXTRAS.items():
        if extra == "java":
            continue  # Java is looked for by itself.
        packages = [package for package, one in EXTRA_OF.items() if one == extra]
        missing = [package for package in packages if not has(package)]
        name = f"extra {extra}"
        if missing:
            text = f"not installed ({', '.join(missing)}): {purpose.replace('`', '')}"
            yield Diagnosis(name, Severity.NONE, text, install_command(extra))
        else:
            yield Diagnosis(name, Severity.OK, ", ".join(packages))


def check_plugins() -> Iterator[Diagnosis]:
    """Check the components of other packages: each is imported."""
    from streamer.components.plugins import list_plugin_problems, list_plugins

    for plugin in list_plugins():
        spec = plugin.spec
        yield Diagnosis("plugins", Severity.OK, f"{spec.kind} {spec.name} from {spec.distribution}")
    for text in list_plugin_problems():
        yield Diagnosis("plugins", Severity.WARNING, text, "mend, upgrade or uninstall the package")
