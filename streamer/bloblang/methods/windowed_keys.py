"""Windowed keys of Kafka Streams and ksqlDB: a record's key with the bounds of its window.

A key of a time window (tumbling, hopping, sliding) is the bytes of the key and the start; one of a
session is the bytes of the key, the end and the start (`WindowedSerdes` of Kafka Streams). Each
time is a big-endian signed integer of 8 bytes: milliseconds since the Unix epoch.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.bloblang.declare import STREAMER, Example, Param, declare
from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.convert import text_of
from streamer.core.durations import MILLISECOND, parse_duration
from streamer.core.value import INT64_MAX

_TIME: Final = "time"
_SESSION: Final = "session"
_TIME_BYTES: Final = 8
_KEY: Final = "key"
_START: Final = "window_start_unix_ms"
_END: Final = "window_end_unix_ms"


def _check_type(window_type: str | None, *_: Any) -> None:
    if window_type is not None and window_type not in (_TIME, _SESSION):
        raise QueryError(f'unknown type of window "{window_type}": expected "time" or "session"')


def _check_size(window_type: str | None, size: str | None) -> None:
    _check_type(window_type)
    if size:
        if window_type == _SESSION:
            raise QueryError("a session has no size: its key has both of its bounds")
        _parse_size(size)


def _parse_size(size: str) -> int:
    """Return a size in ms."""
    try:
        ns = parse_duration(size)
    except ValueError as e:
        raise QueryError(str(e)) from None
    if ns < MILLISECOND or ns % MILLISECOND:
        raise QueryError(f'expected a size of whole milliseconds, got "{size}"')
    return ns // MILLISECOND


def _to_bytes(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    # A key that is not UTF-8 keeps its bytes in a text.
    return text_of(value, "bytes").encode(errors="surrogateescape")


@declare(
    "parse_windowed_key",
    "Parsing",
    Param("window_type", "string"),
    Param("size", "string", ""),
    examples=(
        Example(
            'let at = this.key.decode("hex").parse_windowed_key("time", "10s")\n'
            'root = $at.assign({ "key": $at.key.string() })',
            '{"key":"6164610000019b78fff900"}',
            '{"key":"ada","window_end_unix_ms":1767261610000,"window_start_unix_ms":1767261600000}',
        ),
        Example(
            'let at = this.key.decode("hex").parse_windowed_key("session")\n'
            'root = $at.assign({ "key": $at.key.string() })',
            '{"key":"6164610000019b790029390000019b78fff900"}',
            '{"key":"ada","window_end_unix_ms":1767261612345,"window_start_unix_ms":1767261600000}',
        ),
    ),
    summary=(
        "The key and the bounds in a windowed key of Kafka Streams or ksqlDB: `key`, as bytes, "
        "`window_start_unix_ms` and `window_end_unix_ms`. `window_type` is `time` for tumbling, "
        "hopping and sliding windows, or `session`. A key of a time window contains no end: it is "
        "the start plus `size`, or null without a `size`."
    ),
    check=_check_size,
    origin=STREAMER,
)
def parse_windowed_key(value: Any, window_type: str, size: str) -> dict[str, Any]:
    """Parse a key as `WindowedSerdes` of Kafka Streams writes it."""
    _check_size(window_type, size)
    raw = _to_bytes(value)
    count = 1 if window_type == _TIME else 2
    if len(raw) < count * _TIME_BYTES:
        times = "its start" if window_type == _TIME else "its end and its start"
        raise QueryError(
            f"expected a key of a {window_type} window, with at least {count * _TIME_BYTES} bytes "
            f"for {times}, got {len(raw)} bytes"
        )
    key, times_raw = raw[: -count * _TIME_BYTES], raw[-count * _TIME_BYTES :]
    start = int.from_bytes(times_raw[-_TIME_BYTES:], "big", signed=True)
    end: int | None = None
    if window_type == _SESSION:
        end = int.from_bytes(times_raw[:_TIME_BYTES], "big", signed=True)
    elif size:
        end = min(start + _parse_size(size), INT64_MAX)
    if start < 0 or (end is not None and end < start):
        raise QueryError(
            f"the key is not one of a {window_type} window: it would begin at {start} ms"
            + ("" if end is None else f" and end at {end} ms")
        )
    return {_KEY: key, _START: start, _END: end}


@declare(
    "format_windowed_key",
    "Parsing",
    Param("window_type", "string"),
    Param("start_ms", "integer"),
    Param("end_ms", "integer", None),
    examples=(
        Example(
            'root = this.key.format_windowed_key("time", 1767261600000).encode("hex")',
            '{"key":"ada"}',
            "6164610000019b78fff900",
        ),
        Example(
            'root = this.key.format_windowed_key("session", this.start, this.end).encode("hex")',
            '{"key":"ada","start":1767261600000,"end":1767261612345}',
            "6164610000019b790029390000019b78fff900",
        ),
    ),
    summary=(
        "The windowed key of a string or bytes, as Kafka Streams and ksqlDB read it. "
        "`window_type` is `time` for tumbling, hopping and sliding windows, whose key contains the "
        "start only, or `session`, which needs `end_ms`. Times are milliseconds since the Unix "
        "epoch, such as `@window_start_unix_ms` and `@window_end_unix_ms`."
    ),
    check=_check_type,
    origin=STREAMER,
)
def format_windowed_key(value: Any, window_type: str, start_ms: int, end_ms: int | None) -> bytes:
    """Format a key as `WindowedSerdes` of Kafka Streams does."""
    _check_type(window_type)
    if start_ms < 0:
        raise QueryError(f"expected a start of 0 ms or later, got {start_ms}")
    times = [start_ms]
    if window_type == _SESSION:
        if end_ms is None:
            raise QueryError("a key of a session needs end_ms")
        if end_ms < start_ms:
            raise QueryError(f"the session ends at {end_ms} ms, before its start at {start_ms} ms")
        times = [end_ms, start_ms]
    return _to_bytes(value) + b"".join(ms.to_bytes(_TIME_BYTES, "big") for ms in times)
