"""Patterns of URLs: globs over the keys of a bucket."""

from __future__ import annotations

import re
from typing import NamedTuple

from streamer.core.locations import Location, parse_location

_MAGIC = re.compile(r"[*?[]")


class LocationPattern(NamedTuple):
    """A URL, or a glob of URLs.

    Attributes:
        location: where it is.
        prefix: how each key begins that it can match; the whole key of one that is no glob.
        keys: matches whole keys; None of one that is no glob.
    """

    location: Location
    prefix: str
    keys: re.Pattern[str] | None

    def matches(self, url: str) -> bool:
        """Return whether it names the object of a URL."""
        root = self.location.root
        if not url.startswith(root):
            return False
        key = url.removeprefix(root)
        return key == self.prefix if self.keys is None else self.keys.fullmatch(key) is not None


def is_glob(url: str) -> bool:
    """Return whether a URL is a glob, and may name many objects.

    Example:
        >>> is_glob("s3://rows/*.parquet"), is_glob("s3://rows/a.parquet")
        (True, False)
    """
    return _MAGIC.search(url.partition("://")[2]) is not None


def parse_pattern(url: str) -> LocationPattern:
    """Return the pattern of a URL.

    Raises:
        ValueError: it is no URL of an object; see `parse_location`.
    """
    location = parse_location(url)
    magic = _MAGIC.search(location.key)
    if magic is None:
        return LocationPattern(location, location.key, None)
    prefix = location.key[: magic.start()]
    return LocationPattern(location, prefix, re.compile(_translate(location.key), re.DOTALL))


def _translate(glob: str) -> str:
    """Return a glob as a regular expression: `*` stays in a directory, `**` does not."""
    made: list[str] = []
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            made.append("(?:.*/)?")
            at += 3
        elif glob.startswith("**", at):
            made.append(".*")
            at += 2
        elif glob[at] == "*":
            made.append("[^/]*")
            at += 1
        elif glob[at] == "?":
            made.append("[^/]")
            at += 1
        elif glob[at] == "[" and (end := glob.find("]", at + 2)) > 0:
            inner = glob[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            inner = f"^{inner[1:]}" if inner[0] == "!" else re.sub(r"^\^", r"\\^", inner)
            made.append(f"[{inner}]")
            at = end + 1
        else:
            made.append(re.escape(glob[at]))
            at += 1
    return "".join(made)
