"""Messages of pgoutput, and values of PostgreSQL's types, whatever they are."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamer.connectors.cdc.pgoutput import (
    Cell,
    Column,
    PgoutputError,
    Relation,
    RowChange,
    Truncate,
    format_lsn,
    parse_change,
    parse_lsn,
)
from streamer.connectors.cdc.postgres_values import load_value

_RELATION = b"R\x00\x00\x00\x07public\x00t\x00d\x00\x01\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff"
_UPDATE = b"U\x00\x00\x00\x07K\x00\x01t\x00\x00\x00\x011N\x00\x03t\x00\x00\x00\x012nu"


def test_messages() -> None:
    assert parse_change(_RELATION) == Relation(7, "public", "t", (Column("id", 23),))
    after = [Cell(0x74, b"2"), Cell(0x6E, b""), Cell(0x75, b"")]
    assert parse_change(_UPDATE) == RowChange("U", 7, [Cell(0x74, b"1")], after, False)
    assert parse_change(b"T\x00\x00\x00\x01\x01\x00\x00\x00\x07") == Truncate((7,))
    assert parse_change(b"Mwhatever") is None


@given(st.binary(min_size=1, max_size=60))
@example(_UPDATE[:-1])
@example(_RELATION[:20])
@example(b"I\x00\x00\x00\x07N\x00\x01t\x7f\xff\xff\xffx")
def test_garbage_is_an_error_of_its_own(data: bytes) -> None:
    with suppress(PgoutputError):
        parse_change(data)


@given(st.integers(0, (1 << 64) - 1))
def test_lsn(number: int) -> None:
    assert parse_lsn(format_lsn(number)) == number


@pytest.mark.parametrize("text", ["", "1", "x/y", "1/"])
def test_what_is_no_lsn(text: str) -> None:
    with pytest.raises(PgoutputError, match="is no LSN"):
        parse_lsn(text)


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (1007, b"[0:1]={1,2}", [1, 2]),
        (1009, b'{"a\\\\b","",NULL,"NULL"}', ["a\\b", "", None, "NULL"]),
        (1007, b"{}", []),
        (1007, b"{1,{2", "{1,{2"),
        (1007, b"{x}", "{x}"),
        (114, b"{", "{"),
        (23, b"x", "x"),
        (1114, b"infinity", None),
        (1114, b"0044-03-15 12:00:00 BC", "0044-03-15 12:00:00 BC"),
        (869, b"::1", "::1/128"),
    ],
)
def test_values(kind: int, raw: bytes, value: Any) -> None:
    assert load_value(kind, raw) == value


@given(st.sampled_from([16, 17, 20, 114, 700, 869, 1007, 1009, 1114, 1184]), st.binary(max_size=20))
def test_any_text_is_some_value(kind: int, raw: bytes) -> None:
    load_value(kind, raw)
