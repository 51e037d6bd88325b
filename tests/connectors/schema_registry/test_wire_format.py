"""Headers and paths of types, as Confluent documents them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.connectors.schema_registry.wire_format import (
    add_header,
    read_message_indexes,
    split_header,
    write_message_indexes,
)


def test_a_header_is_a_zero_byte_and_the_id() -> None:
    assert add_header(258, b"x") == b"\0\0\0\1\2x"
    assert split_header(b"\0\0\0\1\2x") == (258, b"x")
    assert split_header(b"\0\0\0\0\1") == (1, b"")
    assert split_header(b"\1\0\0\1\2x") is None and split_header(b"\0\0\0\1") is None


@pytest.mark.parametrize(
    ("indexes", "raw"), [([0], "00"), ([1], "0202"), ([1, 0], "040200"), ([0, 64], "04008001")]
)
def test_the_path_of_a_type_is_zigzag_after_its_length(indexes: list[int], raw: str) -> None:
    assert write_message_indexes(indexes).hex() == raw
    assert read_message_indexes(bytes.fromhex(raw) + b"rest") == (indexes, b"rest")


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=9), st.binary())
def test_a_path_is_read_as_it_was_written(indexes: list[int], rest: bytes) -> None:
    assert read_message_indexes(write_message_indexes(indexes) + rest) == (indexes, rest)


@pytest.mark.parametrize("raw", ["", "80", "04", "0402", "01", "fe" * 9 + "01", "ff" * 12])
def test_what_is_no_path_is_an_error(raw: str) -> None:
    with pytest.raises(ValueError, match="unable to read message indexes"):
        read_message_indexes(bytes.fromhex(raw))
