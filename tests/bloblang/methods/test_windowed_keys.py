"""Windowed keys: as Kafka Streams writes them, both ways; and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.bloblang.errors import QueryError
from streamer.bloblang.methods.windowed_keys import format_windowed_key, parse_windowed_key

MAX_MS = 2**63 - 1
# Written by TimeWindowedSerializer and SessionWindowedSerializer of Kafka Streams 3.9.0.
TIME_KEY = bytes.fromhex("6164610000019b78fff900")
SESSION_KEY = bytes.fromhex("6164610000019b790029390000019b78fff900")
START, SESSION_END = 1767261600000, 1767261612345


@pytest.mark.parametrize(
    ("raw", "of", "expected"),
    [
        (TIME_KEY, ("time", ""), (b"ada", START, None)),
        (TIME_KEY, ("time", "10s"), (b"ada", START, START + 10_000)),
        (SESSION_KEY, ("session", ""), (b"ada", START, SESSION_END)),
        # As the deserializer without a size has it: no end is beyond the largest time.
        (bytes(7) + b"\x05", ("time", "1ms"), (b"", 5, 6)),
        (b"\x7f" + b"\xff" * 7, ("time", "1h"), (b"", MAX_MS, MAX_MS)),
    ],
)
def test_a_key_of_kafka_streams_is_read(raw, of, expected):
    answer = parse_windowed_key(raw, *of)
    assert tuple(answer.values()) == expected
    assert list(answer) == ["key", "window_start_unix_ms", "window_end_unix_ms"]
    # Inputs whose keys are texts keep the bytes of one that is not UTF-8.
    assert parse_windowed_key(raw.decode(errors="surrogateescape"), *of) == answer


def test_a_key_is_written_as_kafka_streams_writes_it():
    assert format_windowed_key("ada", "time", START, None) == TIME_KEY
    assert format_windowed_key(b"ada", "time", START, START + 1) == TIME_KEY
    assert format_windowed_key("ada", "session", START, SESSION_END) == SESSION_KEY


@given(st.binary(), st.integers(0, MAX_MS), st.integers(0, MAX_MS))
def test_every_key_comes_back(key, one, other):
    start, end = sorted((one, other))
    session = parse_windowed_key(format_windowed_key(key, "session", start, end), "session", "")
    assert tuple(session.values()) == (key, start, end)
    time = parse_windowed_key(format_windowed_key(key, "time", start, None), "time", "1ms")
    assert tuple(time.values()) == (key, start, min(start + 1, MAX_MS))


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (
            lambda: parse_windowed_key(b"1234567", "time", ""),
            "at least 8 bytes for its start, got 7",
        ),
        (lambda: parse_windowed_key(TIME_KEY, "session", ""), "at least 16 bytes .* got 11 bytes"),
        (lambda: parse_windowed_key(b"\xff" * 8, "time", ""), "would begin at -1 ms"),
        (lambda: parse_windowed_key(bytes(15) + b"\x01", "session", ""), "at 1 ms and end at 0 ms"),
        (lambda: parse_windowed_key(TIME_KEY, "hopping", ""), '"hopping": expected "time" or'),
        (lambda: parse_windowed_key(TIME_KEY, "time", "ten"), "ten"),
        (lambda: parse_windowed_key(TIME_KEY, "time", "1us"), "whole milliseconds"),
        (lambda: parse_windowed_key(SESSION_KEY, "session", "1s"), "a session has no size"),
        (lambda: format_windowed_key("a", "session", 5, None), "needs end_ms"),
        (lambda: format_windowed_key("a", "session", 5, 4), "ends at 4 ms, before its start at 5"),
        (lambda: format_windowed_key("a", "time", -5, None), "0 ms or later, got -5"),
        (lambda: format_windowed_key("a", "count", 5, None), '"count": expected "time" or'),
    ],
)
def test_what_is_no_windowed_key_is_refused(call, problem):
    with pytest.raises(QueryError, match=problem):
        call()
