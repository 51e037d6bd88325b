"""One record of the log as a line of text: logfmt, JSON, or colours for a terminal.

The forms are those of Benthos's logger (logrus): the order of fields, when a value is quoted and
how, the names of levels. So whatever reads Benthos's logs reads these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from streamer.core.json.dump import dump_json
from streamer.core.value import Number, format_float

LogLine = Callable[[str, str, Mapping[str, Any]], None]
"""Takes a line of the log: its level, its text and its fields."""

LEVEL_NAMES: Final = {
    "FATAL": "fatal",
    "ERROR": "error",
    "WARN": "warning",
    "INFO": "info",
    "DEBUG": "debug",
    "TRACE": "trace",
}
_COLOURS: Final = {"FATAL": 31, "ERROR": 31, "WARN": 33, "INFO": 36, "DEBUG": 37, "TRACE": 36}
_UNQUOTED: Final = re.compile(r"[a-zA-Z0-9\-._/@^+]+")
_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
# Go's JSON encoder writes these so that a line can stand in HTML and in JavaScript.
_HTML_ESCAPES: Final = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


@dataclass(frozen=True, slots=True)
class FieldNames:
    """The names of the three fields of every line."""

    time: str = "time"
    level: str = "level"
    message: str = "msg"


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A line to be.

    Attributes:
        level: `ERROR`, `WARN`, `INFO`, `DEBUG`, `TRACE` or `FATAL`.
        message: the text.
        fields: all other fields.
        time_ns: nanoseconds since the Unix epoch, or None for a line without a time.
    """

    level: str
    message: str
    fields: Mapping[str, Any]
    time_ns: int | None


def to_logfmt(record: LogRecord, names: FieldNames) -> str:
    """Return the record as logfmt, without a line end."""
    parts = []
    if record.time_ns is not None:
        parts.append(_format_pair(names.time, format_timestamp(record.time_ns)))
    parts.append(_format_pair(names.level, LEVEL_NAMES[record.level]))
    if record.message:
        parts.append(_format_pair(names.message, record.message))
    fields = _rename_clashes(record.fields, names)
    parts.extend(_format_pair(name, fields[name]) for name in sorted(fields))
    return " ".join(parts)


def to_json(record: LogRecord, names: FieldNames) -> str:
    """Return the record as a JSON object with sorted keys, without a line end."""
    line = _rename_clashes(record.fields, names)
    if record.time_ns is not None:
        line[names.time] = format_timestamp(record.time_ns)
    line[names.message] = record.message
    line[names.level] = LEVEL_NAMES[record.level]
    text = dump_json(line)
    for char, escaped in _HTML_ESCAPES:
        text = text.replace(char, escaped)
    return _escape_json(text.decode())


def _escape_json(text: str) -> str:
    """Return JSON whose characters are all printed: a terminal that shows it obeys none of them."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def to_terminal(record: LogRecord, names: FieldNames) -> str:
    """Return the record for a terminal that shows colours, without a line end.

    Control characters in the message are escaped: it may hold what anybody sent.
    """
    colour = _COLOURS[record.level]
    level = LEVEL_NAMES[record.level].upper()[:4]
    time = "" if record.time_ns is None else f"[{format_timestamp(record.time_ns)}]"
    message = escape_controls(record.message)
    line = f"\x1b[{colour}m{level}\x1b[0m{time} {message:<44} "
    fields = _rename_clashes(record.fields, names)
    return line + "".join(
        f" \x1b[{colour}m{_quote_name(name)}\x1b[0m={_quote_value(fields[name])}"
        for name in sorted(fields)
    )


def format_timestamp(time_ns: int) -> str:
    """Return a time in RFC 3339, in whole seconds and the machine's time zone."""
    moment = datetime.fromtimestamp(time_ns // 1_000_000_000, tz=UTC).astimezone()
    text = moment.isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def quote_text(text: str) -> str:
    """Quote a text as Go's `%q` does."""
    return '"' + "".join(c if _is_plain(c) else _escape(c) for c in text) + '"'


def format_value(value: Any) -> str:
    """Write a value as Go's `%v` does; text as it is."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, Number):
        return value.text
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, bytes):
        return f"[{' '.join(map(str, value))}]"
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{format_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, (list, tuple)):
        return f"[{' '.join(map(format_value, value))}]"
    return str(value)


def _format_pair(name: str, value: Any) -> str:
    return f"{_quote_name(name)}={_quote_value(value)}"


def _quote_name(name: str) -> str:
    """Return a field's name: quoted where it could be taken for more, for anybody may have sent it.

    Logrus writes all names as they are, and so do we those that can be nothing else.
    """
    harmless = name and all(c.isprintable() and c not in ' "=\\' for c in name)
    return name if harmless else quote_text(name)


def _quote_value(value: Any) -> str:
    text = format_value(value)
    return text if _UNQUOTED.fullmatch(text) else quote_text(text)


def _rename_clashes(fields: Mapping[str, Any], names: FieldNames) -> dict[str, Any]:
    clashes = (names.time, names.level, names.message)
    return {f"fields.{k}" if k in clashes else k: value for k, value in fields.items()}


def _is_plain(char: str) -> bool:
    return char.isprintable() and char not in '"\\'


def escape_controls(text: str) -> str:
    r"""Return a text with what is not printed as marks: nothing of it moves a terminal's cursor.

    Line breaks, tabs, escape sequences and characters that reorder what stands beside them are
    written as the log writes them: `\n`, `\x1b`, `\u202e`.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    short = _ESCAPES.get(char)
    if short is not None:
        return short
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8, as Python keeps it in a text
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
