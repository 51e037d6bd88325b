"""RFC 5424, the syslog of today: a header, structured data, and a message."""

from __future__ import annotations

from typing import Any, Final

from streamer.errors import MessageError
from streamer.syslog.cursor import DIGITS, GRAPH, NONZERO, PARSE_ERROR, Cursor
from streamer.syslog.moments import moment_of

_VERSION: Final = "expecting a version value in the range 1-999"
_TIMESTAMP: Final = "expecting a RFC3339MICRO timestamp or a nil value"
_MESSAGE: Final = "expecting a free-form optional message in UTF-8 (starting with or without BOM)"
_DATA: Final = (
    "expecting a structured data section containing one or more elements "
    '(`[id( key="value")*]+`) or a nil value'
)
_ID: Final = (
    "expecting a structured data element id (from 1 to max 32 US-ASCII characters; except `=`, "
    '` `, `]`, and `"`'
)
_REPEATED: Final = "duplicate structured data element id"
_PARAMETER: Final = (
    'expecting a structured data parameter (`key="value"`, both part from 1 to max 32 US-ASCII '
    'characters; key cannot contain `=`, ` `, `]`, and `"`, while value cannot contain `]`, '
    'backslash, and `"` unless escaped)'
)
_ESCAPE: Final = 'expecting chars `]`, `"`, and `\\` to be escaped within param value'
# The words of the header after the time: name, most characters, and what an error calls it.
_WORDS: Final = (
    ("hostname", 255, "an hostname"),
    ("appname", 48, "an app-name"),
    ("procid", 128, "a procid"),
    ("msgid", 32, "a msgid"),
)
_NAME: Final = GRAPH - frozenset(b'="]')
_NAME_LENGTH: Final = 32
_AFTER_ID: Final = frozenset(b" ]")
_SPECIAL: Final = b'"]\\'


def parse_rfc5424(line: bytes) -> dict[str, Any]:
    """Parse a line.

    Returns:
        Those of `priority`, `facility`, `severity`, `version`, `timestamp`, `hostname`, `appname`,
        `procid`, `msgid`, `structureddata` and `message` that are there.

    Raises:
        MessageError: it is no such line; the text names what was expected at which column.
    """
    cursor = Cursor(line)
    found = cursor.priority()
    found["version"] = _version(cursor)
    cursor.take(b" ", PARSE_ERROR)
    timestamp = _timestamp(cursor)
    if timestamp:
        found["timestamp"] = timestamp
    cursor.take(b" ", PARSE_ERROR)
    for name, most, called in _WORDS:
        error = f"expecting {called} (from 1 to max {most} US-ASCII characters) or a nil value"
        word = cursor.run(GRAPH, most, error)
        cursor.take(b" ", error)
        if word != "-":
            found[name] = word
    elements = _structured(cursor)
    if elements:
        found["structureddata"] = elements
    if cursor.next() == -1:
        return found
    cursor.take(b" ", PARSE_ERROR if elements is None else _DATA)
    message = _message(cursor)
    if message:
        found["message"] = message
    return found


def _version(cursor: Cursor) -> int:
    start = cursor.at
    cursor.take(NONZERO, _VERSION)
    while cursor.at - start < 3 and cursor.next() in DIGITS:
        cursor.at += 1
    if cursor.at - start > 1 and cursor.next() not in (-1, ord(" ")):
        raise cursor.error(_VERSION)
    return int(cursor.text(start))


def _timestamp(cursor: Cursor) -> str:
    if cursor.next() == ord("-"):
        cursor.at += 1
        return ""
    start = cursor.at
    cursor.date(_TIMESTAMP)
    cursor.take(b"T", _TIMESTAMP)
    cursor.clock(_TIMESTAMP)
    if cursor.next() == ord("."):
        cursor.at += 1
        cursor.run(DIGITS, 6, _TIMESTAMP)
    cursor.offset(_TIMESTAMP)
    return moment_of(cursor, start)


def _structured(cursor: Cursor) -> dict[str, dict[str, str]] | None:
    if cursor.next() == ord("-"):
        cursor.at += 1
        return None
    elements: dict[str, dict[str, str]] = {}
    cursor.take(b"[", _DATA)
    while True:
        name = cursor.run(_NAME, _NAME_LENGTH, _ID)
        if cursor.next() not in _AFTER_ID:
            raise cursor.error(_ID)
        if name in elements:
            raise cursor.error(_REPEATED)
        elements[name] = element = {}
        while cursor.take(b" ]", _PARAMETER) == ord(" "):
            key = cursor.run(_NAME, _NAME_LENGTH, _PARAMETER)
            cursor.take(b"=", _PARAMETER)
            cursor.take(b'"', _PARAMETER)
            element[key] = _value(cursor)
        if cursor.next() != ord("["):
            return elements
        cursor.at += 1


def _value(cursor: Cursor) -> str:
    """Read the value of a parameter, and the quote at its end."""
    start = cursor.at
    plain = bytearray()
    while (byte := cursor.next()) != ord('"'):
        if byte in (-1, ord("]")):
            raise cursor.error(_ESCAPE)
        cursor.at += 1
        if byte == ord("\\"):
            byte = cursor.take(_SPECIAL, _ESCAPE)
        plain.append(byte)
    try:
        text = plain.decode()
    except UnicodeDecodeError:
        cursor.at = start + _fault(cursor.data[start : cursor.at])
        raise cursor.error(_PARAMETER) from None
    cursor.at += 1
    return text


def _message(cursor: Cursor) -> str:
    try:
        return cursor.data[cursor.at :].decode()
    except UnicodeDecodeError:
        cursor.at += _fault(cursor.data[cursor.at :])
        raise cursor.error(_MESSAGE) from None


def _fault(raw: bytes) -> int:
    """Return where in bytes that are no UTF-8 they cease to be."""
    try:
        raw.decode()
    except UnicodeDecodeError as e:
        return e.start if e.reason == "invalid start byte" else e.end
    raise MessageError("the bytes are UTF-8")  # nobody asks for these
