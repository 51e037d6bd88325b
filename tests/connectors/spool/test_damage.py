"""Damage in a store: nothing that was safe is lost in silence, and what is lost is counted."""

import random
import re
import shutil
from pathlib import Path

import pytest

from streamer.connectors.spool.blocks import pack_each
from streamer.connectors.spool.damage import (
    check_positions,
    check_stores,
    find_damage,
    skip_damaged_marks,
)
from streamer.connectors.spool.pointer import read_safe
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.store import SpoolStore
from streamer.core.errors import StreamerError
from streamer.sdk.input.replayable import Limit, Offset
from tests.components.inputs.reading import Said, raws_of

_SEGMENT = 600


class Log:
    """Takes log lines and counts."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.counts: dict[str, int] = {}

    def __call__(self, level: str, text: str, fields) -> None:
        self.lines.append(f"{level} {text} {dict(fields)}")

    def count(self, name: str, by: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + by


def filled(spool: Path, count: int = 40, first: int = 0, marks: bool = False) -> list[bytes]:
    """Append blocks of one to three messages, over several segments."""
    store, chance = SpoolStore(spool, segment_bytes=_SEGMENT), random.Random(count)
    raws: list[bytes] = []
    for number in range(first, first + count):
        group = [b"%d.%d" % (number, n) for n in range(chance.randrange(1, 4))]
        raws += group
        store.append([pack_each(group, {})], {"at": number} if marks else None)
    return raws


def read_some(spool: Path, messages: int) -> tuple[Offset, list[bytes]]:
    """Read the first messages, and let the checkpoint have them."""
    source = SpoolSource(spool)
    start = source.initial_offset()
    latest = source.latest_offset(start, 0, Limit(messages=messages))
    found = raws_of(source, start, latest.offset)
    source.on_committed(latest.offset)
    return latest.offset, found


def read_rest(spool: Path, start: Offset) -> list[bytes]:
    source, found = SpoolSource(spool), []
    while True:
        latest = source.latest_offset(start, 0, Limit(messages=7))
        found += raws_of(source, start, latest.offset)
        if latest.offset == start:
            return found
        start = latest.offset


def started(spool: Path, offset: Offset, skips: bool = False) -> Log:
    """Do what a start of a stream does."""
    log = Log()
    check_positions(spool, offset, skips, log)
    with skip_damaged_marks(spool, skips):
        SpoolStore(spool, segment_bytes=_SEGMENT)
    check_stores(spool, skips, log, log.count)
    return log


def segments(spool: Path) -> list[Path]:
    return sorted(spool.glob("*.seg"))


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 1 << (at % 8)
    path.write_bytes(data)


def truncate(path: Path, at: int) -> None:
    path.write_bytes(path.read_bytes()[: at % path.stat().st_size])


def empty(path: Path, at: int) -> None:
    path.write_bytes(b"")


def delete(path: Path, at: int) -> None:
    path.unlink()


def replace_by_neighbour(path: Path, at: int) -> None:
    other = next(one for one in segments(path.parent) if one != path)
    shutil.copy(other, path)


def replace_by_garbage(path: Path, at: int) -> None:
    path.write_bytes(random.Random(at).randbytes(path.stat().st_size))


@pytest.mark.parametrize(
    "damage", [flip, truncate, empty, delete, replace_by_neighbour, replace_by_garbage]
)
@pytest.mark.parametrize("seed", range(12))
def test_damage_of_what_was_safe_stops_the_stream_and_is_counted_where_it_is_skipped(
    tmp_path, damage, seed
):
    chance = random.Random(f"{damage.__name__}{seed}")
    raws = filled(tmp_path)
    start, read = read_some(tmp_path, chance.randrange(1, 40))
    path = chance.choice(segments(tmp_path))
    damage(path, chance.randrange(1 << 20))
    try:
        log = started(tmp_path, start)
    except StreamerError as e:
        text = str(e)
        assert str(path) in text and "--skip-damaged" in text
        log = started(tmp_path, start, skips=True)
        lost = sum(int(n) for n in re.findall(r"(\d+) messages? that came in", text))
        assert lost == log.counts["input_lost"] > 0
        assert all(str(path) in line for line in log.lines)
    more = filled(tmp_path, 5, first=100)
    # Later starts pass over the same, and say nothing any more.
    assert not started(tmp_path, start).lines
    rest = read_rest(tmp_path, start)
    lost = log.counts.get("input_lost", 0)
    assert len(read) + len(rest) == len(raws) + len(more) - lost
    expected = iter([*raws[len(read) :], *more])
    assert all(one in expected for one in rest)  # In their order, and none twice.
    assert rest[-len(more) :] == more


def test_a_store_to_which_nothing_has_come_yet_is_whole_at_each_start(tmp_path):
    for _ in range(3):
        SpoolStore(tmp_path).append([], {"at": 1})
    start = SpoolSource(tmp_path).initial_offset()
    assert not started(tmp_path, start).lines
    store = SpoolStore(tmp_path)
    store.append([pack_each([b"a"], {})])
    assert read_rest(tmp_path, start) == [b"a"]


def test_a_flipped_bit_in_what_was_read_costs_nothing(tmp_path):
    raws = filled(tmp_path, 8)
    start, read = read_some(tmp_path, 3)
    flip(segments(tmp_path)[0], 70)
    assert not started(tmp_path, start).lines
    assert read + read_rest(tmp_path, start) == raws


@pytest.mark.parametrize("at", range(48, 560, 17))
def test_no_bit_of_a_block_can_be_another_one_unseen(tmp_path, at):
    filled(tmp_path, 6)
    (path,) = segments(tmp_path)
    start = {"segment": 1, "pos": 0, "total": 0}
    # Behind the first block, which has no messages.
    at = at % (path.stat().st_size - 60) + 54
    flip(path, at)
    with pytest.raises(StreamerError, match=r"is damaged at byte \d+; [1-3] messages? that"):
        started(tmp_path, start)


def test_workers_see_damage_that_came_after_a_micro_batch_was_planned(tmp_path):
    filled(tmp_path, 3)
    source = SpoolSource(tmp_path)
    start = source.initial_offset()
    (piece,) = source.split(start, source.latest_offset(start, 0, Limit()).offset, 1)
    flip(segments(tmp_path)[0], -2)
    with pytest.raises(StreamerError, match="1.seg is damaged at byte"):
        list(source.read(piece, Said().execution()))


def test_what_comes_before_the_damage_comes_out_first(tmp_path):
    raws = filled(tmp_path, 30)
    start = SpoolSource(tmp_path).initial_offset()
    path = segments(tmp_path)[1]
    delete(path, 0)
    with pytest.raises(StreamerError, match=rf"{path} is missing, and with it \d+ messages that"):
        read_rest(tmp_path, start)
    latest = SpoolSource(tmp_path).latest_offset(start, 0, Limit())
    assert latest.has_more and raws[: latest.waiting] == raws_of(
        SpoolSource(tmp_path), start, latest.offset
    )


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_an_older_copy_of_the_whole_store_is_found(tmp_path, kept):
    spool, copy = tmp_path / "spool", tmp_path / "copy"
    filled(spool, 12)
    if kept:
        shutil.copytree(spool, copy)
    if kept == 2:
        (copy / "safe").write_bytes(b"")
    filled(spool, 20, first=50)
    start, _ = read_some(spool, 1000)
    shutil.rmtree(spool)
    if kept:
        copy.rename(spool)
    if kept != 2:
        with pytest.raises(StreamerError, match="emptied, or an older copy"):
            started(spool, start)
    else:
        SpoolStore(spool)
        with pytest.raises(StreamerError, match="emptied, or an older copy"):
            SpoolSource(spool).latest_offset(start, 0, Limit())
    log = started(spool, start, skips=True)
    assert "Skipped messages that a store no longer has" in log.lines[0]
    more = filled(spool, 8, first=100)
    assert read_rest(spool, start) == more


def test_another_store_in_the_place_of_the_first_is_not_read_on_in(tmp_path):
    filled(tmp_path / "a", 30)
    filled(tmp_path / "b", 30)
    start, _ = read_some(tmp_path / "a", 10)
    with pytest.raises(StreamerError, match="emptied, or an older copy"):
        SpoolSource(tmp_path / "b").latest_offset(start, 0, Limit())


def test_of_several_inputs_the_one_whose_store_is_gone_is_named(tmp_path):
    filled(tmp_path / "a%2Fb", 5)
    filled(tmp_path / "c", 5)
    offset = {"a/b": read_some(tmp_path / "a%2Fb", 9)[0], "c": read_some(tmp_path / "c", 9)[0]}
    check_positions(tmp_path, offset, False, Log())
    shutil.rmtree(tmp_path / "a%2Fb")
    with pytest.raises(StreamerError, match="a%2Fb does not hold"):
        check_positions(tmp_path, offset, False, Log())


def test_what_a_crash_has_left_half_written_is_no_damage(tmp_path):
    raws = filled(tmp_path, 5)
    path = segments(tmp_path)[-1]
    whole = path.read_bytes()
    path.write_bytes(whole + whole[48:90])
    log = started(tmp_path, SpoolSource(tmp_path).initial_offset())
    assert not log.lines and path.read_bytes() == whole
    assert read_rest(tmp_path, SpoolSource(tmp_path).initial_offset()) == raws


def test_a_last_block_that_is_damaged_is_no_half_written_one_where_nothing_says_so(tmp_path):
    filled(tmp_path, 5)
    path = segments(tmp_path)[-1]
    flip(path, -1)
    (tmp_path / "safe").write_bytes(b"")
    size = path.stat().st_size
    with pytest.raises(StreamerError, match="whether the . messages there were half written"):
        SpoolStore(tmp_path)
    assert path.stat().st_size == size


def test_a_damaged_note_of_the_input_is_not_replaced_by_an_older_one_in_silence(tmp_path):
    filled(tmp_path, 6, marks=True)
    assert SpoolStore(tmp_path).mark == {"at": 5}
    start, _ = read_some(tmp_path, 100)
    flip(segments(tmp_path)[-1], -1)
    with pytest.raises(StreamerError, match="how far the input has come"):
        started(tmp_path, start)
    started(tmp_path, start, skips=True)
    with pytest.raises(StreamerError, match="how far the input has come"):
        SpoolStore(tmp_path)
    with skip_damaged_marks(tmp_path, True):
        assert SpoolStore(tmp_path).mark == {"at": 4}
    assert not (tmp_path / "skip_marks").exists()


@pytest.mark.parametrize("text", ["", "{}", '[[[1,0,2,0,0,0]],"x"]', "[[[1, 0, 9, 0, 0]], 1]"])
def test_a_damaged_list_of_what_is_passed_over_is_named(tmp_path, text):
    filled(tmp_path, 3)
    (tmp_path / "skipped.json").write_text(text)
    with pytest.raises(StreamerError, match="skipped.json says what is passed over"):
        find_damage(tmp_path)


def test_what_version_0_1_has_written_is_read_and_gone_on_with(tmp_path):
    former(tmp_path, [[b"a", b"b"], [b"c"]], {"at": 3})
    store = SpoolStore(tmp_path)
    assert store.mark == {"at": 3} and len(segments(tmp_path)) == 2
    store.append([pack_each([b"d"], {})])
    start = {"segment": 1, "pos": 0}
    assert not started(tmp_path, start).lines
    assert read_rest(tmp_path, start) == [b"a", b"b", b"c", b"d"]
    flip(segments(tmp_path)[0], -3)
    with pytest.raises(StreamerError, match="is damaged at byte .*; 1 message that came in"):
        started(tmp_path, start)
    log = started(tmp_path, start, skips=True)
    assert log.counts == {"input_lost": 1}
    assert read_rest(tmp_path, start) == [b"a", b"b", b"d"]


def former(directory: Path, groups: list[list[bytes]], mark) -> None:
    """Write a store as version 0.1 did."""
    import struct
    import zlib

    from streamer.connectors.spool.blocks import pack_records

    data = b""
    for group in groups:
        body = pack_records([pack_each(group, {})], mark)
        data += struct.pack(
            "<4sIII", b"\x89SB1", len(body.data), body.messages, zlib.crc32(body.data)
        )
        data += body.data
    (directory / "0000000001.seg").write_bytes(data)
    safe = struct.pack("<QQB", 1, len(data), 0)
    (directory / "safe").write_bytes(safe + struct.pack("<I", zlib.crc32(safe)))
    assert read_safe(directory)[:2] == (1, len(data))
