from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import parquet

from streamer.bloblang import compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.limits import Limits, stream_limits
from streamer.core.message import Message

MAPPING = compile_mapping("root = content().parse_parquet()")


def parse(raw: bytes) -> object:
    return MAPPING.query([Message(raw)], 0, Execution(lambda: 0))


def write(rows: list[dict[str, object]]) -> bytes:
    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def test_rows() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        {"a": 1, "b": "x", "c": [1.5], "d": {"e": True}, "t": at, "m": Decimal("1.50")},
        {"a": 2, "b": None, "c": None, "d": None, "t": None, "m": None},
    ]
    assert parse(write(rows)) == [
        {"a": 1, "b": "x", "c": [1.5], "d": {"e": True}, "t": 1767225600000000, "m": "1.50"},
        {"a": 2, "b": None, "c": None, "d": None, "t": None, "m": None},
    ]


def test_what_is_no_file() -> None:
    with pytest.raises(MessageError, match="(?i)parquet"):
        parse(b"nonsense")


def test_limits() -> None:
    raw = write([{"a": n} for n in range(100)])
    with stream_limits(Limits(messages=10)), pytest.raises(MessageError, match="limits.messages"):
        parse(raw)
