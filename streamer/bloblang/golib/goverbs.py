"""One value written with one verb of Go's printf, its flags, width and precision.

Source: the documentation of Go's package fmt, and what Benthos's `format` gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from streamer.bloblang.golib.golayout import format_time
from streamer.bloblang.golib.goquote import can_backquote, quote
from streamer.bloblang.golib.text import go_type
from streamer.core.timestamps import Timestamp
from streamer.core.value import DELETED, NOTHING, Number, UInt, format_float

# How Go prints a time.
_TIME_LAYOUT = "2006-01-02 15:04:05.999999999 -0700 MST"


@dataclass(slots=True)
class Verb:
    """A verb and what stands between it and its percent sign.

    Attributes:
        name: the verb's letter.
        flags: those of `+-# 0` that are set; `V` for the `#` of `%#v`, Go's own syntax.
        width: at least so many letters, or None.
        precision: digits or letters, or None.
    """

    name: str
    flags: str = ""
    width: int | None = None
    precision: int | None = None

    def pad(self, text: str, zeros: bool = True) -> str:
        """Fill a text up to the width; with zeros on the left when the flags say so."""
        if not self.width:
            return text
        if "-" in self.flags:
            return text.ljust(self.width)
        return text.rjust(self.width, "0" if zeros and "0" in self.flags else " ")

    def as_value(self) -> Verb:
        """Return the verb `v` with the same width and flags, for notes about a bad verb."""
        return Verb("v", self.flags, self.width, self.precision)


def format_verb(verb: Verb, value: Any, nested: bool = False) -> str:
    """Return a value as the verb has it, or Go's note that the verb does not fit it."""
    if value is None or value is DELETED or value is NOTHING:
        return _format_nil(verb, nested)
    if verb.name == "T" and not nested:
        return _format_letters(verb, go_type(value))
    kind = type(value)
    if kind is list or kind is dict:
        if verb.name == "w":
            return _format_bad_verb(verb, value)
        return _format_container(verb, value)
    if kind is bool:
        text = ("true" if value else "false") if verb.name in "tv" else None
        return _format_bad_verb(verb, value) if text is None else verb.pad(text)
    if kind is int or kind is UInt:
        return _format_integer(verb, value)
    if kind is float:
        return _format_float(verb, value)
    if kind is bytes:
        return _format_bytes(verb, value)
    if kind is Timestamp:
        return _format_string(verb, format_time(value, _TIME_LAYOUT), value)
    return _format_string(verb, value.text if kind is Number else value, value)


def _format_bad_verb(verb: Verb, value: Any) -> str:
    return f"%!{verb.name}({go_type(value)}={format_verb(verb.as_value(), value)})"


def _format_nil(verb: Verb, nested: bool) -> str:
    if nested:
        return "interface {}(nil)" if verb.name == "v" and "V" in verb.flags else "<nil>"
    return verb.pad("<nil>") if verb.name in "vT" else f"%!{verb.name}(<nil>)"


def _format_container(verb: Verb, value: Any) -> str:
    source = verb.name == "v" and "V" in verb.flags
    if type(value) is list:
        parts = [format_verb(verb, item, True) for item in value]
        if source:
            return "[]interface {}{" + ", ".join(parts) + "}"
        return f"[{' '.join(parts)}]"
    pairs = [
        f"{format_verb(verb, k, True)}:{format_verb(verb, value[k], True)}" for k in sorted(value)
    ]
    if source:
        return "map[string]interface {}{" + ", ".join(pairs) + "}"
    return f"map[{' '.join(pairs)}]"


_BASES = {"v": "d", "d": "d", "b": "b", "o": "o", "O": "o", "x": "x", "X": "X"}


def _format_integer(verb: Verb, value: int) -> str:
    if verb.name in _BASES:
        return _format_digits(verb, value)
    letter = chr(value) if 0 <= value <= 0x10FFFF and not 0xD800 <= value < 0xE000 else "\ufffd"
    if verb.name == "c":
        return verb.pad(letter)
    if verb.name == "q":
        return verb.pad(quote(letter, "'", "+" in verb.flags))
    if verb.name == "U":
        text = f"U+{value & (1 << 64) - 1:0{max(verb.precision or 4, 4)}X}"
        if "#" in verb.flags and value == ord(letter) and (letter.isprintable()):
            text += f" '{letter}'"
        return verb.pad(text, zeros=False)
    return _format_bad_verb(verb, value)


def _format_digits(verb: Verb, value: int) -> str:
    flags, base = verb.flags, _BASES[verb.name]
    sign = "-" if value < 0 else "+" if "+" in flags else " " if " " in flags else ""
    size = verb.precision or 0
    if verb.precision is not None:
        if not verb.precision and not value:
            return " " * (verb.width or 0)
    elif "0" in flags and "-" not in flags and verb.width:
        size = verb.width - len(sign)
    text = format(abs(value), base).rjust(size, "0")
    if "#" in flags and verb.name != "v":
        text = {"b": "0b", "x": "0x", "X": "0X"}.get(base, "") + text
        text = "0" + text if base == "o" and text[0] != "0" else text
    text = "0o" + text if verb.name == "O" else text
    return verb.pad(sign + text, zeros=False)


def _format_float(verb: Verb, value: float) -> str:
    flags, name = verb.flags, verb.name
    if name not in "vbgGxXfFeE":
        return _format_bad_verb(verb, value)
    if math.isnan(value) or math.isinf(value):
        text = "NaN" if value != value else "Inf"
        sign = "-" if value < 0 else "+" if "+" in flags else " " if " " in flags else ""
        sign = sign or ("+" if text == "Inf" else "")
        return verb.pad(sign + text, zeros=False)
    text = _float_digits(name, abs(value), verb.precision)
    if "#" in flags and name != "b":
        text = _with_point(text, name, verb.precision)
    negative = math.copysign(1, value) < 0
    sign = "-" if negative else "+" if "+" in flags else " " if " " in flags else ""
    if sign and "0" in flags and "-" not in flags and verb.width:
        return sign + text.rjust(verb.width - len(sign), "0")
    return verb.pad(sign + text)


def _float_digits(name: str, value: float, precision: int | None) -> str:
    if name in "fFeE":
        return f"{value:.{6 if precision is None else precision}{name.replace('F', 'f')}}"
    if name == "b":
        mantissa, exponent = math.frexp(value)
        return f"{int(mantissa * 2**53)}p{exponent - 53:+d}" if value else "0p-1074"
    if name in "xX":
        text = _float_hexadecimal(value, precision)
        return text.upper() if name == "X" else text
    if precision is None:
        return format_float(value).upper() if name == "G" else format_float(value)
    return f"{value:.{precision or 1}{'G' if name == 'G' else 'g'}}"


def _float_hexadecimal(value: float, precision: int | None) -> str:
    mantissa, exponent = math.frexp(value)
    if not value:
        digits = 0
        exponent = 1
    else:
        digits = int(mantissa * 2**53)  # 1 bit before the point, 52 behind it
    if precision is not None and precision < 13:
        drop = 52 - 4 * precision
        half, rest = 1 << (drop - 1), digits & ((1 << drop) - 1)
        digits >>= drop
        digits += rest > half or (rest == half and digits & 1)
        digits <<= drop
        if digits >> 53:
            digits >>= 1
            exponent += 1
    fraction = f"{digits & ((1 << 52) - 1):013x}"
    fraction = (
        fraction.rstrip("0") if precision is None else fraction[:precision].ljust(precision, "0")
    )
    point = "." if fraction else ""
    return f"0x{digits >> 52}{point}{fraction}p{exponent - 1:+03d}"


def _with_point(text: str, name: str, precision: int | None) -> str:
    """Force a decimal point into a number and, for `g`, the zeros up to the precision."""
    mark = next((c for c in "pPeE" if c in text and (c in "pP" or name not in "xX")), "")
    head, _, tail = text.partition(mark) if mark else (text, "", "")
    if name in "vgGx":
        zero_count = 6 if precision is None else precision
        digits = head.replace(".", "").lstrip("0")
        zero_count -= len(digits)
        if "." not in head and head == "0":
            zero_count -= 1
        zeros = "0" * max(zero_count, 0)
    else:
        zeros = ""
    return head + ("" if "." in head else ".") + zeros + mark + tail


def _format_letters(verb: Verb, text: str) -> str:
    return verb.pad(text if verb.precision is None else text[: verb.precision])


def _format_string(verb: Verb, text: str, value: Any) -> str:
    flags, name = verb.flags, verb.name
    source = name == "v" and "V" in flags
    if name in "vs" and not source:
        return _format_letters(verb, text)
    if name == "q" or source:
        cut = text if verb.precision is None else text[: verb.precision]
        if "#" in flags and can_backquote(cut) and not source:
            return verb.pad(f"`{cut}`")
        return verb.pad(quote(cut, ascii_only="+" in flags))
    if name in "xX":
        return _format_hex(verb, text.encode("utf-8", "surrogateescape"))
    return _format_bad_verb(verb, value)


def _format_hex(verb: Verb, raw: bytes) -> str:
    raw = raw if verb.precision is None else raw[: verb.precision]
    prefix = f"0{verb.name}" if "#" in verb.flags else ""
    digits = [f"{byte:02{verb.name}}" for byte in raw]
    if not digits:
        return verb.pad("")
    if " " in verb.flags:
        return verb.pad(" ".join([prefix + pair for pair in digits]))
    return verb.pad(prefix + "".join(digits))


def _format_bytes(verb: Verb, value: bytes) -> str:
    if verb.name in "sqxX":
        return _format_string(verb, value.decode("utf-8", "surrogateescape"), value)
    if verb.name == "v" and "V" in verb.flags:
        return "[]byte{" + ", ".join([f"0x{byte:x}" for byte in value]) + "}"
    parts = [format_verb(verb, byte, True) for byte in value]
    return f"[{' '.join(parts)}]".replace("(int64=", "(uint8=")
