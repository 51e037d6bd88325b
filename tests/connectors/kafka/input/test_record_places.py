"""Where records and values are, found for all at once, beside the loop that reads each length."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.connectors.kafka.input import record_places
from streamer.connectors.kafka.input.record_batches import NeededFields, decode_records
from streamer.connectors.kafka.input.record_places import (
    cut_values,
    find_records,
    join_values,
)
from streamer.core.json.columns.line_block import LineRange


def varint(number: int) -> bytes:
    raw, out = number << 1, b""
    while raw > 127:
        out += bytes([raw & 127 | 128])
        raw >>= 7
    return out + bytes([raw])


def write(batches: list[list[bytes]]) -> tuple[bytes, list[int], list[int], list[int]]:
    """Return batches of records, their sizes and counts, and where records begin."""
    data, sizes, starts = b"", [], []
    for batch in batches:
        begin = len(data)
        for record in batch:
            head = varint(len(record))
            starts.append(len(data) + len(head))
            data += head + record
        sizes.append(len(data) - begin)
    return data, sizes, [len(batch) for batch in batches], starts


# What looks like a length of two bytes and attributes, again and again.
misleading = st.lists(
    st.sampled_from([b"\x80\x01\x00", b"\xff\x00", b"\x00", b"\x90\x02\x00", b"abc", b"\xc3\xa4"]),
    min_size=20,
    max_size=60,
).map(b"".join)
contents = st.one_of(st.binary(min_size=63, max_size=200), misleading, st.binary(max_size=3))
records = contents.map(lambda content: b"\0" + content)


@given(st.lists(st.lists(records, min_size=1, max_size=6), min_size=1, max_size=4))
def test_records_are_found_where_each_length_says(batches: list[list[bytes]]) -> None:
    data, sizes, counts, starts = write(batches)
    assert find_records(data, sizes, counts).tolist() == starts


@pytest.mark.parametrize("size", [64, 70, 117, 500])
@pytest.mark.parametrize("kind", ["text", "umlauts", "random"])
def test_usual_records_take_no_loop(size: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("each length was read by itself")

    monkeypatch.setattr(record_places, "_find_one_by_one", fail)
    rng = random.Random(size)
    made = {
        "text": lambda: b"x" * (size - 1),
        "umlauts": lambda: ("ä\n" * size).encode()[: size - 1],
        "random": lambda: rng.randbytes(size - 1),
    }[kind]
    data, sizes, counts, starts = write([[b"\0" + made() for _ in range(50)] for _ in range(3)])
    assert find_records(data, sizes, counts).tolist() == starts


def test_batches_that_are_longer_or_shorter_than_their_records_are_refused() -> None:
    data, (first, second), counts, _ = write([[b"\0" + b"x" * 99] * 3] * 2)
    for wrong in ([first + 1, second - 1], [first - 102, second + 102]):
        with pytest.raises(ValueError, match="records end"):
            find_records(data, wrong, counts)
    with pytest.raises(ValueError, match="records end"):
        find_records(data, [first, second], [2, 4])


texts = st.lists(
    st.text(st.characters(codec="utf-8", min_codepoint=32), max_size=9).map(str.encode), min_size=1
)


@given(texts, st.binary(max_size=3), st.sampled_from([1, 1, 900]))
def test_values_are_joined_as_lines(texts: list[bytes], gap: bytes, times: int) -> None:
    buffer, places = bytearray(), []
    values = [text * times for text in texts]
    for value in values:
        buffer += gap
        places.append(len(buffer))
        buffer += value + b"\0"
    where, sizes = np.array(places), np.array([len(value) for value in values])
    joined = join_values(bytearray(buffer), where, sizes)
    assert isinstance(joined, LineRange) and list(joined) == values
    assert joined.block.data == b"".join(value + b"\n" for value in values)
    assert cut_values(bytes(buffer), where, sizes) == values
    # A tombstone is an empty line.
    assert list(join_values(buffer, where, np.full(len(values), -1)) or ()) == [b""] * len(values)


@pytest.mark.parametrize("value", [b"two\nlines", b"a\tb", b"\0"])
def test_values_with_control_characters_are_no_lines(value: bytes) -> None:
    buffer = b"ab\0" + value + b"\0"
    assert join_values(bytearray(buffer), np.array([0, 3]), np.array([2, len(value)])) is None
    assert cut_values(buffer, np.array([0, 3]), np.array([2, len(value)])) == [b"ab", value]


@pytest.mark.parametrize(
    ("places", "sizes"),
    [([0, 2], [5, 1]), ([4, 0], [1, 1]), ([0, 9], [1, 1]), ([0], [1 << 40]), ([5], [1])],
)
def test_places_that_records_cannot_have_are_not_joined(
    places: list[int], sizes: list[int]
) -> None:
    """Whatever lengths a broker writes: nothing is read that is not in the buffer."""
    assert join_values(bytearray(b"abcdef"), np.array(places), np.array(sizes)) is None


def test_an_answer_has_the_same_values_as_lines() -> None:
    from tests.connectors.kafka.input.test_record_batches import batch

    values = [b'{"n":%d}' % number + b" " * (number % 90) for number in range(300)]
    written = [(5, None if n % 7 else b"key", value, []) for n, value in enumerate(values)]
    data = batch(*written[:100]) + batch(*written[100:], base=100)
    for begin, end in ((0, 300), (50, 120), (299, 300)):
        cut = decode_records(data, begin, end, NeededFields())
        lines = decode_records(data, begin, end, NeededFields(lines=True))
        assert cut.columns.values == list(lines.columns.values) == values[begin:end]
        assert isinstance(lines.columns.values, LineRange)
        assert cut.next_offset == lines.next_offset


@pytest.mark.parametrize("times", [1, 900])
def test_an_answer_that_is_no_lines_has_its_values_and_keys(times: int) -> None:
    from tests.connectors.kafka.input.test_record_batches import batch

    values = [b"one" * times, b"t\two" * times, b"", b"three" * times]
    data = batch(*[(n, b"key%d" % n, value, []) for n, value in enumerate(values)])
    fields = NeededFields(lines=True, keys=True)
    columns = decode_records(data, 0, 4, fields).columns
    assert columns.values == values
    assert columns.keys == [b"key0", b"key1", b"key2", b"key3"]
    headed = batch(*[(n, b"k", value, [("h", b"v")]) for n, value in enumerate(values)])
    columns = decode_records(headed, 0, 4, NeededFields(lines=True, headers=True)).columns
    assert columns.values == values and columns.headers == [(("h", b"v"),)] * 4
