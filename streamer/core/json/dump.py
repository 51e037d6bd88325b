"""Writes JSON as Benthos writes it: sorted keys, floats as Go spells them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import orjson

from streamer.core.json.number_spelling import differs_from_go, has_exponent, remove_decimal_points
from streamer.core.timestamps import Timestamp
from streamer.core.value import DELETED, INT64_MIN, NOTHING, UINT64_MAX, Number, as_go_float

_OPTIONS: Final = orjson.OPT_SORT_KEYS
_LINE_SEPARATORS: Final = (b"\xe2\x80\xa8", b"\xe2\x80\xa9")


def dump_json(value: Any) -> bytes:
    """Write a value as JSON the way Benthos does.

    Keys are sorted, HTML is not escaped, bytes become base64, timestamps RFC 3339, `DELETED` and
    `NOTHING` null; floats are written as Go writes them (`15`, not `15.0`).

    Raises:
        ValueError: the value holds something that JSON has no form for.

    Example:
        >>> dump_json({"b": 15.0, "a": b"bytes"})
        b'{"a":"Ynl0ZXM=","b":15}'
    """
    try:
        out = copy_to_size(orjson.dumps(value, _encode_unknown, _OPTIONS))
    except orjson.JSONEncodeError as e:
        return copy_to_size(_escape_line_separators(_dump_unencodable(value, e)))
    return copy_to_size(_respell_as_go(out, value)) if differs_from_go(out) or 0xE2 in out else out


_COPY_BELOW_BYTES: Final = 1 << 14


def copy_to_size(out: bytes) -> bytes:
    """Return what orjson wrote in a block of its size: its own have some thousands of bytes more.

    It writes into a block that is larger, and what is left of that when it is cut to size is of
    no use to the next one: a text of seven bytes takes 4,120.
    """
    return b"%b" % out if len(out) < _COPY_BELOW_BYTES else out


def dump_json_each(values: Sequence[Any]) -> list[bytes]:
    """Write some dozens of values as `dump_json` does, which looks through all of them at once.

    Raises:
        ValueError: one of the values holds something that JSON has no form for.
    """
    try:
        out = [orjson.dumps(value, _encode_unknown, _OPTIONS) for value in values]
    except orjson.JSONEncodeError:
        return list(map(dump_json, values))
    # What orjson writes has no line breaks.
    together = b",\n".join(out)
    if not differs_from_go(together) and 0xE2 not in together:
        # As it is split, each gets a block of its size; see `fitted`.
        return together.split(b",\n") if out else out
    if not has_exponent(together) and 0xE2 not in together:
        spelled = remove_decimal_points(together)
        if spelled is not None:
            return spelled.split(b",\n")
    return list(map(copy_to_size, map(_respell_as_go, out, values)))


def dump_json_texts(texts: Sequence[str]) -> list[bytes]:
    """Write some texts as `dump_json` does.

    Raises:
        ValueError: one of them has no form as JSON.
    """
    try:
        out = orjson.dumps(texts)
    except orjson.JSONEncodeError:
        return list(map(dump_json, texts))
    if 0xE2 in out:
        return list(map(dump_json, texts))
    # Within a text a quote has a backslash before it, so that none looks like what parts two.
    return [b'"%b"' % text for text in out[2:-2].split(b'","')] if texts else []


def _respell_as_go(out: bytes, value: Any) -> bytes:
    """Return what orjson wrote for a value as Go would have written it."""
    if differs_from_go(out):
        spelled = None if has_exponent(out) else remove_decimal_points(out)
        out = _dump_with_go_floats(value) if spelled is None else spelled
    return _escape_line_separators(out)


def _dump_with_go_floats(value: Any) -> bytes:
    try:
        return orjson.dumps(_with_go_floats(value), _encode_unknown_plain, _OPTIONS)
    except orjson.JSONEncodeError as e:
        return _dump_unencodable(value, e)


def _escape_line_separators(out: bytes) -> bytes:
    if 0xE2 in out:
        for mark, escape in zip(_LINE_SEPARATORS, (b"\\u2028", b"\\u2029"), strict=True):
            out = out.replace(mark, escape)
    return out


def _encode_unknown(value: Any) -> Any:
    """Return what stands for a value that orjson does not know.

    A number whose own text ends in `.0` gets a blank in front: `remove_decimal_points` leaves it
    alone.
    """
    if type(value) is Number and value.text.endswith(".0"):
        return orjson.Fragment(" " + value.text)
    return _encode_unknown_plain(value)


def _encode_unknown_plain(value: Any) -> Any:
    kind = type(value)
    if kind is Number:
        return orjson.Fragment(value.text)
    if kind is bytes:
        import base64

        return base64.b64encode(value).decode()
    if kind is Timestamp:
        return str(value)
    if value is DELETED or value is NOTHING:
        return None
    raise TypeError(f"a value of type {kind.__name__} has no JSON form")


_NO_FLOATS: Final = frozenset((str, int, bool, type(None)))


def _with_go_floats(value: Any) -> Any:
    """Return the value with each plain float replaced by one that carries Go's spelling."""
    kind = type(value)
    if kind is float:
        # A whole number prints as Go has it when it is an integer; -0.0 is the one that would not.
        if -1e15 < value < 1e15 and value and value.is_integer():
            return int(value)
        return as_go_float(value)
    if kind is dict:
        return {k: v if type(v) in _NO_FLOATS else _with_go_floats(v) for k, v in value.items()}
    if kind is list:
        return [v if type(v) in _NO_FLOATS else _with_go_floats(v) for v in value]
    return value


def _dump_unencodable(value: Any, error: Exception) -> bytes:
    """Write what orjson refuses: integers beyond 64 bits, and texts with bytes that are no UTF-8.

    Such bytes stand in a text as lone surrogates; like Go, each is written as U+FFFD. It refuses
    deep values as well.
    """
    if "Recursion" in str(error):
        from streamer.core.json.deep_json import dump_deep

        return dump_deep(value, dump_json)
    try:
        return orjson.dumps(_without_surrogates(value), _encode_unknown_plain, _OPTIONS)
    except (orjson.JSONEncodeError, RecursionError):
        raise ValueError(str(error)) from None


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _without_surrogates(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return {_SURROGATE.sub("\ufffd", k): _without_surrogates(v) for k, v in value.items()}
    if kind is list:
        return [_without_surrogates(v) for v in value]
    if kind is str and _SURROGATE.search(value):
        shown = json.dumps(value, ensure_ascii=False)
        return orjson.Fragment(_SURROGATE.sub(r"\\ufffd", shown))
    if kind is int and not INT64_MIN <= value <= UINT64_MAX:
        return orjson.Fragment(str(value))
    return as_go_float(value) if kind is float else value
