"""RFC 3164, the syslog of old: a time without a year, a host, a tag, and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Final

from streamer.errors import MessageError
from streamer.syslog.cursor import DIGITS, GRAPH, NONZERO, PARSE_ERROR, PRINT, Cursor
from streamer.syslog.moments import moment_of, stamped

_STAMP: Final = "expecting a Stamp timestamp"
_EITHER: Final = "expecting a Stamp or a RFC3339 timestamp"
_HOSTNAME: Final = "expecting an hostname (from 1 to max 255 US-ASCII characters)"
_TAG: Final = "expecting an alphanumeric tag (max 32 characters)"
_MONTHS: Final = tuple(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
_TAG_LETTERS: Final = PRINT - frozenset(b" :[")
_TAG_LENGTH: Final = 32
_AFTER_TAG: Final = frozenset(b":[")
_UNPRINTED: Final = frozenset(range(0x20)) | {0x7F}


@dataclass(frozen=True, slots=True)
class Rfc3164:
    """Parses lines.

    Attributes:
        best_effort: whether a line whose end is not as it should be gives what stands before; for
            most faults it is an error all the same, as in Benthos.
        rfc3339: whether times may be those of RFC 3339 as well.
        zone: where times are told; they are taken to be in UTC.
    """

    best_effort: bool
    rfc3339: bool
    zone: tzinfo

    def parse(self, line: bytes, year: int) -> dict[str, Any]:
        """Parse a line.

        Args:
            line: the line.
            year: the year of times without one.

        Returns:
            Those of `priority`, `facility`, `severity`, `timestamp`, `hostname`, `appname`,
            `procid` and `message` that are there.

        Raises:
            MessageError: it is no such line; the text names what was expected at which column.
        """
        cursor = Cursor(line)
        found = cursor.priority()
        timestamp = self._timestamp(cursor, year)
        if not timestamp or cursor.next() != ord(" "):
            return self._partial(found, cursor)
        cursor.at += 1
        found["timestamp"] = timestamp
        hostname = cursor.run(GRAPH, 255, _HOSTNAME)
        cursor.take(b" ", _HOSTNAME)
        found["hostname"] = hostname
        message = _content(cursor, found)
        for name in ("hostname", "appname", "procid"):
            if found.get(name, "-") in ("", "-"):
                found.pop(name, None)
        if message is None:
            return self._partial(found, cursor)
        found["message"] = message
        return found

    def _partial(self, found: dict[str, Any], cursor: Cursor) -> dict[str, Any]:
        if self.best_effort:
            return found
        raise cursor.error(PARSE_ERROR)

    def _timestamp(self, cursor: Cursor, year: int) -> str:
        start = cursor.at
        if self.rfc3339 and cursor.next() in DIGITS:
            try:
                cursor.date(_EITHER)
                cursor.take(b"T", _EITHER)
                cursor.clock(_EITHER)
            except MessageError:
                return ""  # no blank follows, and so what has been found is all there is
            cursor.offset(_EITHER)
            return moment_of(cursor, start)
        for length in range(3):
            begun = cursor.data[start : start + length]
            letters = {month[length] for month in _MONTHS if month.startswith(begun)}
            cursor.take(bytes(letters), _STAMP)
        cursor.take(b" ", _STAMP)
        first = cursor.take(b" 123", _STAMP)
        cursor.take({ord(" "): NONZERO, ord("3"): frozenset(b"01")}.get(first, DIGITS), _STAMP)
        cursor.take(b" ", _STAMP)
        cursor.clock(_STAMP)
        return stamped(cursor, start, year, self.zone)


def _content(cursor: Cursor, found: dict[str, Any]) -> str | None:
    """Read the tag, what stands in brackets after it, and the message, which is returned.

    Where the tag turns out not to be one, the message begins where the machine last began a part:
    so a bracket that was thought to hold a process's number cuts it. It is None when there is a
    byte in it that cannot be printed.
    """
    start = cursor.at
    line = cursor.data
    first = cursor.next()
    if first == -1 or first in _UNPRINTED:
        raise cursor.error(_TAG)
    while cursor.next() in _TAG_LETTERS and cursor.at - start < _TAG_LENGTH:
        cursor.at += 1
    if cursor.at == start or cursor.next() not in _AFTER_TAG:
        return _told(line, start, start)
    found["appname"] = cursor.text(start)
    if cursor.next() == ord(":"):
        after = cursor.at + 2
        whole = line[after - 1 : after] != b" " or after >= len(line)
        return _told(line, start, start if whole else after)
    begin = cursor.at + 1 if cursor.at + 1 < len(line) else start
    printed = start
    at = line.find(b"]", begin)
    while at >= 0:
        found["procid"] = line[begin:at].decode(errors="replace")
        if line[at + 1 : at + 3] == b": " and at + 3 < len(line):
            printed = begin = at + 3
        at = line.find(b"]", max(at + 1, begin))
    return _told(line, printed, begin)


def _told(line: bytes, printed: int, begin: int) -> str | None:
    """Return a line's end, when all that follows a column can be printed."""
    if _UNPRINTED.intersection(line[printed:]):
        return None
    return line[begin:].decode(errors="replace")
