"""A value as text: as `string()` and interpolation write it, and as Go's `%v` does."""

from __future__ import annotations

import re
from typing import Any, Final

from streamer.core.json.dump import dump_json
from streamer.core.timestamps import Timestamp
from streamer.core.value import DELETED, NOTHING, Number, UInt, format_float

# What Go's TrimSpace takes for white space.
GO_WHITESPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
    "\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_LONE_SURROGATE: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")

_HTML_ESCAPES: Final = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))


def clean_config_text(text: str) -> str:
    """Return a mapping's text without halves of surrogate pairs, which Go's strings don't hold.

    Those that stand for a stray byte stay.
    """
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def to_text(value: Any) -> str:
    """Return a value as text: scalars by themselves, arrays and objects as JSON."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is int or kind is UInt:
        return str(value)
    if kind is Number:
        return value.text  # type: ignore[no-any-return]
    if kind is float:
        return format_float(value)
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    if kind is bytes:
        return value.decode("utf-8", "surrogateescape")  # type: ignore[no-any-return]
    if kind is Timestamp:
        return str(value)
    return _escape_html(dump_json(value)).decode()


def _escape_html(json: bytes) -> bytes:
    """Return JSON with what HTML takes for its own escaped, as Go writes it by default.

    Benthos does so wherever a value becomes text, but not in messages and metadata.
    """
    for letter, escape in _HTML_ESCAPES:
        json = json.replace(letter, escape)
    return json


def metadata_text(value: Any) -> str:
    """Return a value of the metadata as text; its JSON has no escapes for HTML."""
    return dump_json(value).decode() if type(value) in (dict, list) else to_text(value)


def to_bytes(value: Any) -> bytes:
    """Return a value as bytes: bytes as they are, anything else as the bytes of its text."""
    kind = type(value)
    if kind is bytes:
        return value  # type: ignore[no-any-return]
    if kind is dict or kind is list:
        return _escape_html(dump_json(value))
    return to_text(value).encode("utf-8", "surrogateescape")


def go_text(value: Any) -> str:
    """Return a value as Go's `%v` prints it (`map[a:1 b:[x <nil>]]`)."""
    kind = type(value)
    if value is None or value is DELETED or value is NOTHING:
        return "<nil>"
    if kind is list:
        return f"[{' '.join(map(go_text, value))}]"
    if kind is dict:
        return f"map[{' '.join(f'{k}:{go_text(value[k])}' for k in sorted(value))}]"
    if kind is bytes:
        return f"[{' '.join(map(str, value))}]"
    if kind is Timestamp:
        return str(value)
    return to_text(value)


def go_type(value: Any, *, of_document: bool = False) -> str:
    """Return the name of the Go type that Benthos would hold the value in.

    Args:
        value: any value.
        of_document: whether it comes straight from a parsed document, where numbers keep their
            text.
    """
    kind = type(value)
    if kind in (int, float, Number) and (of_document or kind is Number):
        return "json.Number"
    if value is DELETED:
        return "value.Delete"
    names: dict[type, str] = {
        int: "int64",
        UInt: "uint64",
        float: "float64",
        str: "string",
        bool: "bool",
        bytes: "[]uint8",
        list: "[]interface {}",
        dict: "map[string]interface {}",
        Timestamp: "time.Time",
        type(None): "<nil>",
    }
    return names.get(kind, "value.Nothing")
