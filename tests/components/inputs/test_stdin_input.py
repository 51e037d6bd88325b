"""The `stdin` input: the spool's segments as one stream, and what may be forgotten."""

import io
import os

import pytest

from streamer.connectors.spool.byte_spool import ByteSpoolWriter, read_durable
from streamer.core.errors import StreamerError
from streamer.sdk.input.replayable import Limit

from .reading import built, planned, raws_of
from .rooms import lodging


def stdin_input(directory, scanner: str = "{}"):
    return built(f"input: {{stdin: {{scanner: {{lines: {scanner}}}}}}}\n").continue_from(directory)


def spooled(directory, *appends: bytes, segment_size: int = 1 << 20) -> ByteSpoolWriter:
    spool = ByteSpoolWriter(directory, segment_size=segment_size)
    for data in appends:
        spool.append(data)
    return spool


def test_nothing_is_there_before_the_first_line(tmp_path):
    source = stdin_input(tmp_path)
    assert source.latest_offset(source.initial_offset(), 0, Limit()).waiting == 0
    spooled(tmp_path, b"half a line")
    latest = source.latest_offset(source.initial_offset(), 0, Limit())
    assert (latest.waiting, latest.is_ended, latest.offset) == (0, False, source.initial_offset())


def test_lines_are_read_when_they_are_safe_and_the_input_ends_with_the_pipe(tmp_path):
    source, start = stdin_input(tmp_path), {"segment": 1, "pos": 0}
    spool = spooled(tmp_path, b"1\n2\nthr")
    latest = source.latest_offset(start, 0, Limit())
    assert raws_of(source, start, latest.offset) == [b"1", b"2"] and not latest.is_ended
    spool.append(b"ee\n4")
    spool.close()
    last = source.latest_offset(latest.offset, 0, Limit())
    assert raws_of(source, latest.offset, last.offset) == [b"three", b"4"] and last.is_ended


def test_segments_are_one_stream_however_micro_batches_are_cut(tmp_path):
    lines = [b"%d" % n for n in range(100)]
    spooled(tmp_path, *(line + b"\n" for line in lines), segment_size=40).close()
    source = stdin_input(tmp_path)
    assert len(os.listdir(tmp_path)) > 5
    for limit in (Limit(1), Limit(7), Limit(size=30), Limit()):
        found = [
            raw
            for start, latest in planned(source, limit)
            for raw in raws_of(source, start, latest.offset, 3)
        ]
        assert found == lines


def test_a_replay_reads_the_same_when_more_has_come(tmp_path):
    source, start = stdin_input(tmp_path), {"segment": 1, "pos": 0}
    spool = spooled(tmp_path, b"1\n2\n", segment_size=6)
    end = source.latest_offset(start, 0, Limit()).offset
    spool.append(b"3\n4\n5\n")
    assert raws_of(source, start, end) == [b"1", b"2"]


def test_a_new_start_goes_on_where_the_checkpoint_is(tmp_path):
    source, start = stdin_input(tmp_path), {"segment": 1, "pos": 0}
    spooled(tmp_path, b"1\n2\n3\n")
    after = source.latest_offset(start, 0, Limit(2)).offset
    spooled(tmp_path, b"4\n").close()
    last = source.latest_offset(after, 0, Limit())
    assert raws_of(source, after, last.offset) == [b"3", b"4"] and last.is_ended


def test_segments_are_forgotten_when_the_checkpoint_has_all_of_them(tmp_path):
    spooled(tmp_path, b"1\n", b"2\n", b"3\n", segment_size=2)
    source = stdin_input(tmp_path)
    source.on_committed({"segment": 3, "pos": 0})
    assert sorted(path.stem for path in tmp_path.glob("*.seg")) == ["0000000003", "0000000004"]
    after = {"segment": 3, "pos": 0}
    assert raws_of(source, after, source.latest_offset(after, 0, Limit()).offset) == [b"3"]
    assert read_durable(tmp_path).segment == 4


@pytest.mark.parametrize("before", [True, False])
def test_what_was_piped_in_on_one_machine_is_not_read_as_if_it_were_a_clusters(tmp_path, before):
    def opened(local: bool) -> None:
        with lodging(tmp_path, read_stdin=io.BytesIO(b"1\n").read) as found:
            found.house.local = local
            built("input: {stdin: {}}\n").open(found.room)
            assert found.house.join(10)

    opened(before)
    opened(before)
    with pytest.raises(StreamerError, match="piped in while spark.master, or the scanner, was"):
        opened(not before)
