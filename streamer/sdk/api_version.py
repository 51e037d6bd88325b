"""Version of the public interface `streamer.sdk`, and the versions that still work with it.

The version is `MAJOR.MINOR`. A minor version adds names or optional arguments. A major version
removes or changes some, after they were deprecated for at least two minor versions.
"""

from __future__ import annotations

import re
from typing import Final

API_VERSION: Final = "1.1"
"""The version of `streamer.sdk`; a component declares the one that it was built for."""

_VERSION: Final = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


def find_version_problem(declared: object) -> str:
    """Return the reason why a component for a version of the interface cannot run; "" for none.

    Args:
        declared: the version that the component was built for.

    Example:
        >>> find_version_problem("1.0")
        ''
        >>> find_version_problem("2.0")
        'it was built for version 2.0 of streamer.sdk; expected 1.1, or an earlier 1.x'
    """
    expected = f"expected {API_VERSION}, or an earlier {_parse_version(API_VERSION)[0]}.x"
    if declared is None:
        return f"it declares no API_VERSION; {expected}"
    if not isinstance(declared, str) or not _VERSION.fullmatch(declared):
        return f'its API_VERSION is {declared!r}; expected a text such as "{API_VERSION}"'
    major, minor = _parse_version(declared)
    our_major, our_minor = _parse_version(API_VERSION)
    if major != our_major or minor > our_minor:
        return f"it was built for version {declared} of streamer.sdk; {expected}"
    return ""


def _parse_version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)
