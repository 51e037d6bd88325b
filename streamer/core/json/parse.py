"""Parses JSON as Benthos reads it. Source: Benthos `internal/message/util.go`."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

import orjson

from streamer.core.json.number_spelling import (
    has_long_number,
    has_odd_number,
    has_plain_numbers,
    keeps_long_numbers,
)
from streamer.core.value import INT64_MAX, INT64_MIN, MAX_DIGITS, Number


def parse_json_int(text: str) -> int:
    """Return a number of a JSON document, for `json.parser`.

    Raises:
        ValueError: it has more digits than any number of 64 bits, a float too.
    """
    if len(text) <= MAX_DIGITS:
        return int(text)
    raise ValueError(f"the number {text[:20]}… has {len(text)} digits: value out of range")


def _parse_exact_int(text: str) -> int | Number:
    if len(text) > 20:
        return Number(text)
    value = int(text)
    return value if INT64_MIN <= value <= INT64_MAX and text != "-0" else Number(text, float(value))


def _parse_exact_float(text: str) -> float:
    return Number(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"invalid value {text}")


_EXACT: Final = json.JSONDecoder(
    parse_float=_parse_exact_float, parse_int=_parse_exact_int, parse_constant=_refuse_constant
)


def parse_json(raw: bytes) -> Any:
    """Parse one JSON document; numbers keep value and text (see `Number`).

    Invalid UTF-8 inside strings becomes U+FFFD, as in Go.

    Raises:
        ValueError: the text is not one JSON document; says what was found, in Go's words.

    Example:
        >>> parse_json(b'{"id": 12, "tags": ["a"]}')
        {'id': 12, 'tags': ['a']}
    """
    try:
        document = orjson.loads(raw)
    except ValueError as e:
        return _parse_leniently(raw, e)
    if has_plain_numbers(raw):
        return document
    exact = has_odd_number(raw) or (has_long_number(raw) and not keeps_long_numbers(raw, document))
    return _EXACT.decode(raw.decode()) if exact else document


def parse_json_long(raw: bytes) -> Any:
    """Parse one JSON document that holds no odd number, as `parse_json` does.

    Raises:
        ValueError: as `parse_json`; also for what that takes and orjson does not.
    """
    document = orjson.loads(raw)
    return document if keeps_long_numbers(raw, document) else _EXACT.decode(raw.decode())


def _parse_leniently(raw: bytes, error: ValueError) -> Any:
    """Parse what orjson refuses and Go takes: invalid UTF-8, lone surrogates, 1e400."""
    if not raw:
        raise ValueError("message is empty") from None
    try:
        document = _EXACT.decode(raw.decode(errors="replace"))
    except (ValueError, RecursionError):
        from streamer.core.json.json_fault import find_json_fault

        raise ValueError(find_json_fault(raw) or f"not a JSON document: {error}") from None
    return _replace_lone_surrogates(document) if b"\\u" in raw else document


def _replace_lone_surrogates(value: Any) -> Any:
    """Return a value with surrogates that stand alone replaced, so that it can be encoded."""
    kind = type(value)
    if kind is dict:
        return {_replace_lone_surrogates(k): _replace_lone_surrogates(v) for k, v in value.items()}
    if kind is list:
        return [_replace_lone_surrogates(v) for v in value]
    if kind is str and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value
