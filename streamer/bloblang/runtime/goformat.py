"""Go's printf and quoting, as far as values of mappings can meet them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from streamer.bloblang.runtime.operations import NUMBERS
from streamer.bloblang.runtime.text import go_text, go_type, to_text
from streamer.value import Number

_VERB: Final = re.compile(r"%([+\-# 0]*)(\d+)?(?:\.(\d+)?)?(.)", re.DOTALL)
_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quote(text: str) -> str:
    """Return a text as a Go string literal."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    if c == " " or c.isprintable():
        return c
    code = ord(c)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def sprintf(template: str, args: Sequence[Any]) -> str:
    """Fill a format the way Go does, with Go's notes about arguments that don't fit."""
    used = 0

    def fill(match: re.Match[str]) -> str:
        nonlocal used
        if match[4] == "%":
            return "%"
        if used >= len(args):
            return f"%!{match[4]}(MISSING)"
        used += 1
        return _verb(match, args[used - 1])

    text = _VERB.sub(fill, template)
    if used < len(args):
        extra = ", ".join(f"{go_type(a)}={go_text(a)}" for a in args[used:])
        text += f"%!(EXTRA {extra})"
    return text


def _verb(match: re.Match[str], value: Any) -> str:
    flags, width, precision, verb = match.groups()
    if precision is None and "." in match[0]:
        precision = "0"
    text = _plain(verb, value, None if precision is None else int(precision), flags)
    if text is None:
        return f"%!{verb}({go_type(value)}={go_text(value)})"
    if width is None or len(text) >= int(width):
        return text
    if "-" in flags:
        return text.ljust(int(width))
    if "0" in flags and type(value) in NUMBERS:
        sign = text[0] if text[:1] in ("+", "-") else ""
        return sign + text[len(sign) :].rjust(int(width) - len(sign), "0")
    return text.rjust(int(width))


def _plain(verb: str, value: Any, precision: int | None, flags: str) -> str | None:
    kind = type(value)
    if verb == "v":
        return go_text(value)
    if verb == "T":
        return go_type(value)
    if verb == "t":
        return to_text(value) if kind is bool else None
    if kind is Number and verb in "sq":  # a json.Number is a text to Go
        value, kind = value.text, str
    if verb in "sqxX" and kind in (str, bytes):
        return _text(verb, value, precision)
    if verb in "dboxXc" and kind is int:
        return _integer(verb, value, flags)
    if verb in "feEgG" and kind in NUMBERS and kind is not int:
        return _float(verb, float(value), precision, flags)
    if verb == "s" and kind in (list, dict):
        return go_text(value)
    return None


def _text(verb: str, value: Any, precision: int | None) -> str:
    text = value.decode(errors="replace") if type(value) is bytes else value
    if verb in "xX":
        raw = value if type(value) is bytes else value.encode()
        return str(raw.hex() if verb == "x" else raw.hex().upper())
    text = text if precision is None else text[:precision]
    return quote(text) if verb == "q" else str(text)


def _integer(verb: str, value: int, flags: str) -> str:
    if verb == "c":
        return chr(value)
    sign = "+" if "+" in flags else ""
    return format(value, sign + verb)


def _float(verb: str, value: float, precision: int | None, flags: str) -> str:
    sign = "+" if "+" in flags else ""
    if verb in "gG" and precision is None:
        return (sign if value >= 0 else "") + go_text(float(value))
    return format(value, f"{sign}.{6 if precision is None else precision}{verb}")
