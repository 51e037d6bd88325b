"""RFC 5424, the syslog of today: a header, structured data, and a message."""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.formats.syslog.cursor import (
    DIGITS,
    GRAPH,
    NONZERO,
    PARSE_ERROR,
    LineCursor,
)
from streamer.connectors.formats.syslog.line_times import format_line_time
from streamer.core.errors import MessageError

_VERSION_ERROR: Final = "expecting a version value in the range 1-999"
_TIMESTAMP_ERROR: Final = "expecting a RFC3339MICRO timestamp or a nil value"
_MESSAGE_ERROR: Final = (
    "expecting a free-form optional message in UTF-8 (starting with or without BOM)"
)
_DATA_ERROR: Final = (
    "expecting a structured data section containing one or more elements "
    '(`[id( key="value")*]+`) or a nil value'
)
_ID_ERROR: Final = (
    "expecting a structured data element id (from 1 to max 32 US-ASCII characters; except `=`, "
    '` `, `]`, and `"`'
)
_REPEATED_ID_ERROR: Final = "duplicate structured data element id"
_PARAMETER_ERROR: Final = (
    'expecting a structured data parameter (`key="value"`, both part from 1 to max 32 US-ASCII '
    'characters; key cannot contain `=`, ` `, `]`, and `"`, while value cannot contain `]`, '
    'backslash, and `"` unless escaped)'
)
_ESCAPE_ERROR: Final = 'expecting chars `]`, `"`, and `\\` to be escaped within param value'
# The words of the header after the time: name, most characters, and what an error calls it.
_WORDS: Final = (
    ("hostname", 255, "an hostname"),
    ("appname", 48, "an app-name"),
    ("procid", 128, "a procid"),
    ("msgid", 32, "a msgid"),
)
_NAME: Final = GRAPH - frozenset(b'="]')
_MAX_NAME_CHARS: Final = 32
_AFTER_ID: Final = frozenset(b" ]")
_SPECIAL: Final = b'"]\\'


def parse_rfc5424(line: bytes) -> dict[str, Any]:
    """Parse a line.

    Returns:
        Those of `priority`, `facility`, `severity`, `version`, `timestamp`, `hostname`,
        `appname`, `procid`, `msgid`, `structureddata` and `message` that are there.

    Raises:
        MessageError: it is no such line; the text names what was expected at which column.
    """
    cursor = LineCursor(line)
    fields = cursor.read_priority()
    fields["version"] = _read_version(cursor)
    cursor.expect_byte(b" ", PARSE_ERROR)
    timestamp = _read_timestamp(cursor)
    if timestamp:
        fields["timestamp"] = timestamp
    cursor.expect_byte(b" ", PARSE_ERROR)
    for name, max_chars, called in _WORDS:
        error = f"expecting {called} (from 1 to max {max_chars} US-ASCII characters) or a nil value"
        word = cursor.read_run(GRAPH, max_chars, error)
        cursor.expect_byte(b" ", error)
        if word != "-":
            fields[name] = word
    elements = _read_structured_data(cursor)
    if elements:
        fields["structureddata"] = elements
    if cursor.next_byte() == -1:
        return fields
    cursor.expect_byte(b" ", PARSE_ERROR if elements is None else _DATA_ERROR)
    message = _read_message(cursor)
    if message:
        fields["message"] = message
    return fields


def _read_version(cursor: LineCursor) -> int:
    start = cursor.at
    cursor.expect_byte(NONZERO, _VERSION_ERROR)
    while cursor.at - start < 3 and cursor.next_byte() in DIGITS:
        cursor.at += 1
    if cursor.at - start > 1 and cursor.next_byte() not in (-1, ord(" ")):
        raise cursor.error_at(_VERSION_ERROR)
    return int(cursor.text_since(start))


def _read_timestamp(cursor: LineCursor) -> str:
    if cursor.next_byte() == ord("-"):
        cursor.at += 1
        return ""
    start = cursor.at
    cursor.expect_date(_TIMESTAMP_ERROR)
    cursor.expect_byte(b"T", _TIMESTAMP_ERROR)
    cursor.expect_time(_TIMESTAMP_ERROR)
    if cursor.next_byte() == ord("."):
        cursor.at += 1
        cursor.read_run(DIGITS, 6, _TIMESTAMP_ERROR)
    cursor.expect_offset(_TIMESTAMP_ERROR)
    return format_line_time(cursor, start)


def _read_structured_data(cursor: LineCursor) -> dict[str, dict[str, str]] | None:
    if cursor.next_byte() == ord("-"):
        cursor.at += 1
        return None
    elements: dict[str, dict[str, str]] = {}
    cursor.expect_byte(b"[", _DATA_ERROR)
    while True:
        name = cursor.read_run(_NAME, _MAX_NAME_CHARS, _ID_ERROR)
        if cursor.next_byte() not in _AFTER_ID:
            raise cursor.error_at(_ID_ERROR)
        if name in elements:
            raise cursor.error_at(_REPEATED_ID_ERROR)
        elements[name] = element = {}
        while cursor.expect_byte(b" ]", _PARAMETER_ERROR) == ord(" "):
            key = cursor.read_run(_NAME, _MAX_NAME_CHARS, _PARAMETER_ERROR)
            cursor.expect_byte(b"=", _PARAMETER_ERROR)
            cursor.expect_byte(b'"', _PARAMETER_ERROR)
            element[key] = _read_value(cursor)
        if cursor.next_byte() != ord("["):
            return elements
        cursor.at += 1


def _read_value(cursor: LineCursor) -> str:
    """Read the value of a parameter, and the quote at its end."""
    start = cursor.at
    plain = bytearray()
    while (byte := cursor.next_byte()) != ord('"'):
        if byte in (-1, ord("]")):
            raise cursor.error_at(_ESCAPE_ERROR)
        cursor.at += 1
        if byte == ord("\\"):
            byte = cursor.expect_byte(_SPECIAL, _ESCAPE_ERROR)
        plain.append(byte)
    try:
        text = plain.decode()
    except UnicodeDecodeError:
        cursor.at = start + _find_utf8_fault(cursor.data[start : cursor.at])
        raise cursor.error_at(_PARAMETER_ERROR) from None
    cursor.at += 1
    return text


def _read_message(cursor: LineCursor) -> str:
    try:
        return cursor.data[cursor.at :].decode()
    except UnicodeDecodeError:
        cursor.at += _find_utf8_fault(cursor.data[cursor.at :])
        raise cursor.error_at(_MESSAGE_ERROR) from None


def _find_utf8_fault(raw: bytes) -> int:
    """Return where in bytes that are no UTF-8 they cease to be."""
    try:
        raw.decode()
    except UnicodeDecodeError as e:
        return e.start if e.reason == "invalid start byte" else e.end
    raise MessageError("the bytes are UTF-8")  # nobody asks for these
