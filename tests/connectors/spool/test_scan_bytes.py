"""Streams that land uncut: whatever the reads, every message is whole and none is missing."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamer.components.scanners.lines import LineScanner
from streamer.connectors.spool.blocks import Record, pack_records, read_chunks
from streamer.connectors.spool.driver_reader import batches_of_chunk
from streamer.connectors.spool.scan_bytes import make_scan_function, scan_into_spool
from tests.components.inputs.reading import Said


class Reads:
    """A stream that gives what it is told to, and then breaks or ends."""

    def __init__(self, reads: list[bytes], breaks: bool = False) -> None:
        self._reads = reads
        self._breaks = breaks

    def read(self, size: int, /) -> bytes:
        if self._reads:
            return self._reads.pop(0)
        if self._breaks:
            raise OSError("the other side is gone")
        return b""


def messages(records: list[Record], scanner: LineScanner) -> list[bytes]:
    cut = make_scan_function(scanner, Said().execution(), "test")
    found: list[bytes] = []
    for record in records:
        for chunk in read_chunks(
            memoryview(pack_records([record]).data), cut, lambda request: None
        ):
            found += [message.raw for one in batches_of_chunk(chunk) for message in one]
    return found


@example([b"|||", b"a"], b"||")
@example([b"|", b"|", b"|a"], b"||")
@given(
    st.lists(st.text("ab|", min_size=1, max_size=4).map(str.encode), max_size=12),
    st.sampled_from([b"|", b"||", b"|a"]),
)
def test_lines_are_what_they_are_in_the_whole_stream(reads: list[bytes], delimiter: bytes) -> None:
    scanner = LineScanner(delimiter=delimiter, strip_return=False)
    landed: list[Record] = []
    scan_into_spool(Reads(list(reads)), scanner, "test", Said().execution(), landed.append)
    assert messages(landed, scanner) == scanner.split(b"".join(reads)).lines


def test_what_came_before_a_connection_broke_has_landed() -> None:
    landed: list[Record] = []
    with pytest.raises(OSError, match="the other side is gone"):
        stream = Reads([b"1\n2", b"3\n4"], breaks=True)
        scan_into_spool(stream, LineScanner(), "test", Said().execution(), landed.append)
    assert messages(landed, LineScanner()) == [b"1", b"23", b"4"]
