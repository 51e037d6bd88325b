"""RFC 3164, the syslog of old: a time without a year, a host, a tag, and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Final

from streamer.connectors.formats.syslog.cursor import (
    DIGITS,
    GRAPH,
    NONZERO,
    PARSE_ERROR,
    PRINT,
    LineCursor,
)
from streamer.connectors.formats.syslog.line_times import format_line_time, format_stamp_time
from streamer.core.errors import MessageError

_STAMP_ERROR: Final = "expecting a Stamp timestamp"
_TIMESTAMP_ERROR: Final = "expecting a Stamp or a RFC3339 timestamp"
_HOSTNAME_ERROR: Final = "expecting an hostname (from 1 to max 255 US-ASCII characters)"
_TAG_ERROR: Final = "expecting an alphanumeric tag (max 32 characters)"
_MONTHS: Final = tuple(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
_TAG_LETTERS: Final = PRINT - frozenset(b" :[")
_MAX_TAG_CHARS: Final = 32
_AFTER_TAG: Final = frozenset(b":[")
_UNPRINTABLE: Final = frozenset(range(0x20)) | {0x7F}


@dataclass(frozen=True, slots=True)
class Rfc3164Parser:
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
        cursor = LineCursor(line)
        fields = cursor.read_priority()
        timestamp = self._read_timestamp(cursor, year)
        if not timestamp or cursor.next_byte() != ord(" "):
            return self._end_early(fields, cursor)
        cursor.at += 1
        fields["timestamp"] = timestamp
        hostname = cursor.read_run(GRAPH, 255, _HOSTNAME_ERROR)
        cursor.expect_byte(b" ", _HOSTNAME_ERROR)
        fields["hostname"] = hostname
        message = _read_content(cursor, fields)
        for name in ("hostname", "appname", "procid"):
            if fields.get(name, "-") in ("", "-"):
                fields.pop(name, None)
        if message is None:
            return self._end_early(fields, cursor)
        fields["message"] = message
        return fields

    def _end_early(self, fields: dict[str, Any], cursor: LineCursor) -> dict[str, Any]:
        if self.best_effort:
            return fields
        raise cursor.error_at(PARSE_ERROR)

    def _read_timestamp(self, cursor: LineCursor, year: int) -> str:
        start = cursor.at
        if self.rfc3339 and cursor.next_byte() in DIGITS:
            try:
                cursor.expect_date(_TIMESTAMP_ERROR)
                cursor.expect_byte(b"T", _TIMESTAMP_ERROR)
                cursor.expect_time(_TIMESTAMP_ERROR)
            except MessageError:
                return ""  # no blank follows, and so what has been found is all there is
            cursor.expect_offset(_TIMESTAMP_ERROR)
            return format_line_time(cursor, start)
        for length in range(3):
            begun = cursor.data[start : start + length]
            letters = {month[length] for month in _MONTHS if month.startswith(begun)}
            cursor.expect_byte(bytes(letters), _STAMP_ERROR)
        cursor.expect_byte(b" ", _STAMP_ERROR)
        first = cursor.expect_byte(b" 123", _STAMP_ERROR)
        cursor.expect_byte(
            {ord(" "): NONZERO, ord("3"): frozenset(b"01")}.get(first, DIGITS), _STAMP_ERROR
        )
        cursor.expect_byte(b" ", _STAMP_ERROR)
        cursor.expect_time(_STAMP_ERROR)
        return format_stamp_time(cursor, start, year, self.zone)


def _read_content(cursor: LineCursor, fields: dict[str, Any]) -> str | None:
    """Read the tag, what stands in brackets after it, and the message, which is returned.

    Where the tag turns out not to be one, the message begins where the machine last began a part:
    so a bracket that was thought to hold a process's number cuts it. It is None when there is a
    byte in it that cannot be printed.
    """
    start = cursor.at
    line = cursor.data
    first = cursor.next_byte()
    if first == -1 or first in _UNPRINTABLE:
        raise cursor.error_at(_TAG_ERROR)
    while cursor.next_byte() in _TAG_LETTERS and cursor.at - start < _MAX_TAG_CHARS:
        cursor.at += 1
    if cursor.at == start or cursor.next_byte() not in _AFTER_TAG:
        return _read_rest(line, start, start)
    fields["appname"] = cursor.text_since(start)
    if cursor.next_byte() == ord(":"):
        after = cursor.at + 2
        whole = line[after - 1 : after] != b" " or after >= len(line)
        return _read_rest(line, start, start if whole else after)
    begin = cursor.at + 1 if cursor.at + 1 < len(line) else start
    printed = start
    at = line.find(b"]", begin)
    while at >= 0:
        fields["procid"] = line[begin:at].decode(errors="replace")
        if line[at + 1 : at + 3] == b": " and at + 3 < len(line):
            printed = begin = at + 3
        at = line.find(b"]", max(at + 1, begin))
    return _read_rest(line, printed, begin)


def _read_rest(line: bytes, printed: int, begin: int) -> str | None:
    """Return a line's end, when all that follows a column can be printed."""
    if _UNPRINTABLE.intersection(line[printed:]):
        return None
    return line[begin:].decode(errors="replace")
