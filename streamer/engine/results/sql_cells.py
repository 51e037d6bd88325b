"""The values of a row of SQL as one line of JSON, between the process of a query and this one."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

MAX_DEPTH: Final = 64
"""Levels of lists and structs that a value has at most."""

_PLAIN_TYPES: Final = frozenset({type(None), bool, int, str})


def encode_row(row: tuple[Any, ...]) -> bytes:
    r"""Return a row as a line of JSON.

    Values that JSON does not have are arrays of their type and their text.

    Raises:
        ValueError: a value has more than `MAX_DEPTH` levels, or too many digits.

    Example:
        >>> encode_row((1, "é", b"\xff"))
        b'[1,"\xc3\xa9",["bytes","/w=="]]'
        >>> decode_row(encode_row((Decimal("1.50"), [None, date(2026, 1, 2)])))
        (Decimal('1.50'), [None, datetime.date(2026, 1, 2)])
    """
    values = [_encode(value, MAX_DEPTH) for value in row]
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode(errors="surrogatepass")


def decode_row(line: bytes) -> tuple[Any, ...]:
    """Return the row that a line of JSON has.

    Raises:
        ValueError: it is none that `encode_row` has made.
    """
    try:
        values = json.loads(line.decode(errors="surrogatepass"))
        return tuple(map(_decode, values))
    except (ArithmeticError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no row: {type(error).__name__}") from None


def _encode(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else ["float", str(value)]
    if depth == 0:
        raise ValueError(f"a value has over {MAX_DEPTH} levels of lists and structs")
    # A datetime is a date, too.
    if isinstance(value, datetime):
        return ["datetime", value.isoformat()]
    if isinstance(value, date):
        return ["date", value.isoformat()]
    if isinstance(value, time):
        return ["time", value.isoformat()]
    if isinstance(value, timedelta):
        return ["timedelta", [value.days, value.seconds, value.microseconds]]
    if isinstance(value, Decimal):
        return ["decimal", str(value)]
    if isinstance(value, bytes | bytearray | memoryview):
        return ["bytes", base64.b64encode(bytes(value)).decode()]
    if isinstance(value, dict):
        pairs = value.items()
        return ["dict", [[_encode(k, depth - 1), _encode(v, depth - 1)] for k, v in pairs]]
    if isinstance(value, list | tuple):
        name = "list" if isinstance(value, list) else "tuple"
        if set(map(type, value)) <= _PLAIN_TYPES:
            return [name, value]
        return [name, [_encode(one, depth - 1) for one in value]]
    return str(value)


_DECODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "float": float,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
    "decimal": Decimal,
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "dict": lambda pairs: {_decode(name): _decode(value) for name, value in pairs},
    "list": lambda values: (
        values if list not in set(map(type, values)) else [*map(_decode, values)]
    ),
    "tuple": lambda values: tuple(map(_decode, values)),
}


def _decode(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    name, content = value
    return _DECODERS[name](content)
