"""Record batches, written by kafka-python and by librdkafka's rules, read by ours."""

import random
import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecordsBuilder

from streamer.connectors.kafka.input.record_batches import (
    AbortedTransaction,
    CorruptRecordsError,
    NeededFields,
    decode_records,
)

ALL = NeededFields(keys=True, timestamps=True, headers=True, offsets=True)
NONE = NeededFields()
END = 1 << 60

short = st.none() | st.binary(max_size=9)
headers = st.lists(st.tuples(st.text(max_size=3), short), max_size=3)
times = st.integers(min_value=0, max_value=1 << 45)
records = st.tuples(times, short, st.none() | st.binary(max_size=300), headers)


def batch(*some, base=0, codec=0, magic=2, **more) -> bytes:
    """Write one batch of (timestamp, key, value, headers)."""
    builder = MemoryRecordsBuilder(magic, codec, 1 << 30, **more)
    for time, key, value, heads in some:
        builder.append(time, key, value, heads)
    builder.close()
    written = bytearray(builder.buffer())
    written[:8] = struct.pack(">q", base)
    return bytes(written)


def mark(written: bytes, bits: int, producer: int = -1) -> bytes:
    """Set attributes and the producer of a batch; its check sum is right again."""
    changed = bytearray(written)
    changed[22] |= bits
    changed[43:51] = struct.pack(">q", producer)
    changed[17:21] = struct.pack(">I", crc32c(bytes(changed[21:])))
    return bytes(changed)


def one(value: bytes, base: int = 0) -> bytes:
    return batch((1, None, value, []), base=base)


def control(kind: int, base: int, producer: int) -> bytes:
    key = struct.pack(">hh", 0, kind)
    return mark(batch((1, key, b"\0" * 6, []), base=base), 32 | 16, producer)


@given(st.lists(st.lists(records, min_size=1, max_size=9), min_size=1, max_size=4))
def test_all_batches_of_an_answer_become_columns(batches):
    data, expected, base = b"", [], 5
    for some in batches:
        data += batch(*some, base=base)
        expected += [(base + place, *record) for place, record in enumerate(some)]
        base += len(some)
    read, behind = decode_records(data, 5, END, ALL)
    assert behind == base
    assert read.offsets == [offset for offset, *_ in expected]
    assert read.timestamps == [time for _, time, *_ in expected]
    assert read.keys == [key or b"" for _, _, key, *_ in expected]
    assert read.values == [value or b"" for *_, value, _ in expected]
    assert read.tombstones == [n for n, (*_, value, _) in enumerate(expected) if value is None]
    assert [list(some) for some in read.headers] == [
        [(name, value or b"") for name, value in heads] for *_, heads in expected
    ]


@pytest.mark.parametrize("size", [0, 63, 64, 8191, 8192, 2_000_000])
def test_lengths_of_records_of_any_size(size):
    value = random.Random(size).randbytes(size)
    read, behind = decode_records(one(value) + one(b"next", 1), 0, END, NONE)
    assert read.values == [value, b"next"] and behind == 2
    assert not read.offsets and not read.keys and not read.headers and not read.timestamps


def gzip(body: bytes) -> bytes:
    import gzip

    return gzip.compress(body)


def snappy(body: bytes) -> bytes:
    import pyarrow as pa

    return pa.Codec("snappy").compress(body, asbytes=True)


def snappy_blocks(body: bytes) -> bytes:
    """Frame blocks as snappy-java does."""
    parts = [snappy(body[at : at + 100]) for at in range(0, len(body), 100)]
    return b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1" + b"".join(
        struct.pack(">i", len(part)) + part for part in parts
    )


def lz4(body: bytes) -> bytes:
    import lz4.frame

    return lz4.frame.compress(body)


def zstd(body: bytes) -> bytes:
    import pyarrow as pa

    return pa.Codec("zstd").compress(body, asbytes=True)


@pytest.mark.parametrize(
    ("number", "pack"), [(1, gzip), (2, snappy), (2, snappy_blocks), (3, lz4), (4, zstd)]
)
def test_compressed_batches_stand_between_others(number, pack):
    plain = batch(*((n, b"k", b"value %d" % n, [("h", b"x")]) for n in range(40)), base=1)
    body = pack(plain[61:])
    packed = plain[:8] + struct.pack(">i", 49 + len(body)) + plain[12:61] + body
    read, behind = decode_records(
        one(b"before") + mark(packed, number) + one(b"end", 41), 0, 99, ALL
    )
    assert read.values == [b"before", *(b"value %d" % n for n in range(40)), b"end"]
    assert read.offsets == list(range(42)) and behind == 42
    assert read.timestamps[1:41] == list(range(40)) and read.keys[7] == b"k"


def test_only_a_range_is_given():
    data = batch(*((n, None, b"%d" % n, []) for n in range(10)), base=10) + one(b"20", 20)
    assert decode_records(data, 13, 17, ALL).columns.offsets == [13, 14, 15, 16]
    assert decode_records(data, 13, 17, ALL).next_offset == 20
    assert decode_records(data, 19, 21, ALL).columns.values == [b"9", b"20"]
    assert decode_records(data, 20, 21, NONE).columns.values == [b"20"]
    assert decode_records(data, 0, 10, NONE).columns.values == []


def test_offsets_that_compaction_has_left():
    data = bytearray(batch(*((n, None, b"%d" % n, []) for n in range(3)), base=100))
    data[23:27] = struct.pack(">i", 40)  # the batch goes on to what is gone
    read, behind = decode_records(mark(bytes(data), 0), 100, END, ALL)
    assert read.offsets == [100, 101, 102] and behind == 141


def test_a_batch_that_is_cut_off_is_left_out():
    whole = one(b"a") + one(b"b", 1)
    for size in range(len(whole)):
        read, behind = decode_records(whole[:size], 0, END, NONE)
        assert (read.values, behind) in (([], -1), ([b"a"], 1))


def test_the_time_of_the_log_counts_where_the_topic_says_so():
    data = mark(batch((5, None, b"a", []), (3, None, b"b", [])), 8)
    assert decode_records(data, 0, END, ALL).columns.timestamps == [5, 5]


def test_aborted_transactions_and_marks_are_left_out():
    aborted = [AbortedTransaction(0, 7)]
    data = (
        mark(one(b"aborted"), 16, 7)
        + mark(one(b"of another", 1), 16, 8)
        + one(b"plain", 2)
        + control(0, 3, 7)
        + mark(one(b"later", 4), 16, 7)
        + control(1, 5, 8)
        + control(1, 6, 7)
    )
    read, behind = decode_records(data, 0, END, ALL, aborted)
    assert read.values == [b"of another", b"plain", b"later"] and behind == 7
    assert decode_records(data, 0, END, NONE).columns.values[0] == b"aborted"


@pytest.mark.parametrize("at", [17, 24, 60, 62, 65])
def test_a_changed_byte_is_noticed(at):
    data = bytearray(one(b"a value"))
    data[at] ^= 1
    with pytest.raises(CorruptRecordsError, match=r"a record batch near offset 0 cannot be read"):
        decode_records(bytes(data), 0, END, NONE)


def test_records_that_end_elsewhere_are_noticed():
    data = bytearray(batch((1, None, b"a", []), (2, None, b"b", [])))
    data[61] += 2  # the length of the first
    with pytest.raises(CorruptRecordsError, match="records end"):
        decode_records(mark(bytes(data), 0), 0, END, NONE)


def test_an_unknown_compression_is_said():
    with pytest.raises(CorruptRecordsError, match="its compression is number 5"):
        decode_records(mark(one(b"a"), 5), 0, END, NONE)


@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets_of_old_brokers_are_read(magic):
    data = batch((5, b"k", b"a", []), (6, None, None, []), magic=magic)
    read, behind = decode_records(data, 0, END, ALL)
    assert read.values == [b"a", b""] and read.keys == [b"k", b""] and behind == 2
    assert read.tombstones == [1] and read.offsets == [0, 1]
    assert read.timestamps == ([5, 6] if magic else [-1, -1])
    assert decode_records(data, 1, END, ALL).columns.offsets == [1]
