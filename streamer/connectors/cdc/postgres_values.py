"""Values of PostgreSQL as JSON has them, from the texts that the server writes.

Numbers, booleans and JSON are values, times are RFC 3339 in UTC, `bytea` is base64; arrays of these
are arrays. All else (numeric, uuid, intervals, enums, …) is the text. They follow Redpanda Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from streamer.core.json.parse import parse_json

_NUMBERS: Final = {"NaN", "Infinity", "-Infinity"}


def _parse_float(text: str) -> Any:
    return text if text in _NUMBERS else float(text)


def _format_time(text: str) -> Any:
    """Return a date or a time as RFC 3339, None for one without an end; sessions are in UTC."""
    if text.endswith("infinity"):
        return None
    if text.endswith(" BC"):
        return text
    date, _, clock = text.partition(" ")
    return f"{date}T{clock.removesuffix('+00') or '00:00:00'}Z"


def _parse_document(text: str) -> Any:
    try:
        return parse_json(text.encode())
    except ValueError:
        return text


def _format_address(text: str) -> str:
    return text if "/" in text else f"{text}/{128 if ':' in text else 32}"


def _parse_text(text: str) -> Any:
    return text


# By the numbers that PostgreSQL gives its types.
_LOADS: Final[dict[int, Callable[[str], Any]]] = {
    16: lambda text: text == "t",
    17: lambda text: bytes.fromhex(text.removeprefix("\\x")),
    **dict.fromkeys((20, 21, 23), int),
    **dict.fromkeys((700, 701), _parse_float),
    **dict.fromkeys((114, 3802), _parse_document),
    **dict.fromkeys((1082, 1114, 1184), _format_time),
    869: _format_address,
}
_ITEMS: Final = {
    **{1000: 16, 1001: 17, 1016: 20, 1005: 21, 1007: 23, 1021: 700, 1022: 701},
    **{199: 114, 3807: 3802, 1182: 1082, 1115: 1114, 1185: 1184, 1041: 869},
    # Texts of several kinds, numeric, uuid.
    **{1009: 25, 1015: 1043, 1014: 1042, 1003: 19, 1231: 1700, 2951: 2950},
}
"""The types of the items of arrays."""


def load_value(type_number: int, raw: bytes) -> Any:
    """Return a value of a column.

    Args:
        type_number: of its type, as the server numbers it.
        raw: as the server writes it; it is not null.
    """
    text = raw.decode(errors="replace")
    if (item := _ITEMS.get(type_number)) is not None:
        return _load_array(text, _LOADS.get(item, _parse_text))
    try:
        return _LOADS.get(type_number, _parse_text)(text)
    except ValueError:
        return text


def _load_array(text: str, load: Callable[[str], Any]) -> Any:
    """Return an array such as `{1,NULL,{"a b",c}}`; the text where it is none."""
    # With bounds of its own it begins with them: `[0:1]={1,2}`.
    body = text[text.find("{") :] if text.startswith("[") else text
    stack: list[list[Any]] = [[]]
    try:
        for kind, item in _tokens(body):
            if kind == "{":
                stack.append([])
            elif kind == "}":
                done = stack.pop()
                stack[-1].append(done)
            else:
                stack[-1].append(None if kind == "null" else load(item))
        [[array]] = stack
    except (ValueError, IndexError):
        return text
    return array


def _tokens(text: str) -> Iterable[tuple[str, str]]:
    at = 0
    while at < len(text):
        char = text[at]
        if char in "{}":
            yield char, ""
            at += 1
        elif char == ",":
            at += 1
        elif char == '"':
            parts, at = [], at + 1
            while text[at] != '"':
                at += text[at] == "\\"
                parts.append(text[at])
                at += 1
            at += 1
            yield "item", "".join(parts)
        else:
            end = at
            while text[end] not in ",}":
                end += 1
            item, at = text[at:end], end
            yield "null" if item == "NULL" else "item", item
