"""YAML's scalars, as Go's yaml.v3 reads them: YAML 1.2, with a few spellings of 1.1 kept."""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any, Final

_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
# Only these may start something that is not a string (yaml.v3's table of hints).
_HINTS: Final = frozenset("+-0123456789.yYnNtTfFoO~")
_INT: Final = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9]\d*|0))", re.ASCII
)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_TAGS: Final = {
    "tag:yaml.org,2002:str": "a string",
    "tag:yaml.org,2002:int": "an int",
    "tag:yaml.org,2002:float": "a float",
    "tag:yaml.org,2002:bool": "a bool",
    "tag:yaml.org,2002:null": "null",
    "tag:yaml.org,2002:timestamp": "a timestamp",
    "tag:yaml.org,2002:binary": "base64",
}
_MAX_NUMBER_CHARS: Final = 40
_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})
_FALSE: Final = frozenset({"n", "N", "no", "No", "NO", "off", "Off", "OFF"})


def resolve_scalar(text: str, style: str = "", tag: str = "") -> Any:
    """Return the value of a scalar: None, bool, int, float or str.

    Args:
        text: the scalar's text, quotes and escapes undone.
        style: empty for a plain scalar; only these are ever anything but strings.
        tag: an explicit tag, in its long form (`tag:yaml.org,2002:int`), or empty.

    Raises:
        ValueError: the tag is unknown, or does not fit the text.
    """
    if not tag or tag == "!":
        return text if style or tag else _resolve_plain(text)
    if tag not in _TAGS:
        # It is not shown: it may be a secret that begins with an exclamation mark.
        raise ValueError("this tag is not supported")
    if tag.endswith((":str", ":timestamp")):
        return text
    if tag.endswith(":binary"):
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise ValueError("the tag !!binary expects base64 of UTF-8 text") from None
    value = _resolve_plain(text)
    if tag.endswith(":float") and type(value) is int:
        return float(value)
    fits = {"int": int, "float": float, "bool": bool, "null": type(None)}[tag.rpartition(":")[2]]
    if type(value) is not fits:
        raise ValueError(f"the text is not {_TAGS[tag]}, as its tag says")
    return value


def _resolve_plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _HINTS:
        return text
    if text[0] == ".":
        return _parse_float(text, text)
    bare = text.replace("_", "")
    # Far longer than any number in int64: a string in yaml.v3 too, or a float.
    if len(bare) <= 4 * _MAX_NUMBER_CHARS and (match := _INT.fullmatch(bare)):
        sign, hexadecimal, binary, octal, decimal = match.groups()
        for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)):
            if digits is not None:
                number = int(sign + digits, base)
                if -(2**63) <= number < 2**64 and not (sign == "+" and number >= 2**63):
                    return number
    return _parse_float(bare, text)


def _parse_float(bare: str, text: str) -> Any:
    if _FLOAT.fullmatch(bare):
        number = float(bare)
        if not math.isinf(number):
            return number
    return text


def parse_bool(value: Any) -> bool | None:
    """Return what a value means where a bool is expected, or None when it is no bool.

    yaml.v3 takes the words of YAML 1.1 (`yes`, `off`, …) there, and only there.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return True if value in _TRUE else False if value in _FALSE else None
    return None
