"""Damage in a spool of bytes: what was piped in is there as it came, or the stream stops."""

import random
import re

import pytest

from streamer.connectors.spool.byte_spool import ByteSpoolWriter, read_durable
from streamer.connectors.spool.checksums import checksums_path, read_checksums
from streamer.connectors.spool.damage import check_stores
from streamer.connectors.spool.pointer import Position, write_read_position
from streamer.core.errors import StreamerError
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import built, raws_of
from tests.connectors.spool.test_damage import (
    Log,
    delete,
    empty,
    flip,
    replace_by_garbage,
    replace_by_neighbour,
    segments,
    truncate,
)


def spooled(spool, first: int, count: int) -> list[bytes]:
    writer, lines = ByteSpoolWriter(spool, segment_size=100), []
    for number in range(first, first + count):
        lines += [b"%d.%d" % (number, n) for n in range(number % 3 + 1)]
        writer.append(b"".join(b"%d.%d\n" % (number, n) for n in range(number % 3 + 1)))
    return lines


def rest_of(spool, start) -> list[bytes]:
    source = built("input: {stdin: {scanner: {lines: {}}}}\n").continue_from(spool)
    return raws_of(source, start, source.latest_offset(start, 0, Limit()).offset)


@pytest.mark.parametrize(
    "damage", [flip, truncate, empty, delete, replace_by_neighbour, replace_by_garbage]
)
@pytest.mark.parametrize("seed", range(6))
def test_damage_of_what_was_piped_in_stops_the_stream_and_is_counted(tmp_path, damage, seed):
    chance = random.Random(f"{damage.__name__}{seed}")
    lines = spooled(tmp_path, 0, 40)
    source = built("input: {stdin: {scanner: {lines: {}}}}\n").continue_from(tmp_path)
    start = source.latest_offset(source.initial_offset(), 0, Limit(chance.randrange(1, 40))).offset
    read = raws_of(source, source.initial_offset(), start)
    source.on_committed(start)
    path = chance.choice([one for one in segments(tmp_path) if one.stat().st_size > 1])
    damage(path, chance.randrange(1 << 20))
    log = Log()
    ByteSpoolWriter(tmp_path)
    try:
        check_stores(tmp_path, False, log, log.count)
    except StreamerError as e:
        assert str(path) in str(e) and "--skip-damaged" in str(e)
        with pytest.raises(StreamerError, match=path.name):
            rest_of(tmp_path, start)
        check_stores(tmp_path, True, log, log.count)
        lost = sum(int(n) for n in re.findall(r"(\d+) messages? that came in", str(e)))
        assert lost == log.counts["input_lost"] > 0
    lines += spooled(tmp_path, 100, 3)
    check_stores(tmp_path, False, log, log.count)
    rest = rest_of(tmp_path, start)
    lost = len(lines) - len(read) - len(rest)
    counted = log.counts.get("input_lost", 0)
    # Of what was appended at once, some lines may have been read before.
    assert counted - 2 <= lost <= counted
    expected = iter(lines[len(read) :])
    assert all(one in expected for one in rest)


@pytest.mark.parametrize("damage", [flip, truncate, empty, delete, replace_by_garbage])
@pytest.mark.parametrize("at", range(3, 12, 2))
def test_what_says_how_much_is_safe_may_be_damaged(tmp_path, damage, at):
    lines = spooled(tmp_path, 0, 9)
    damage(tmp_path / "durable.json", at)
    spooled(tmp_path, 0, 0)
    assert rest_of(tmp_path, {"segment": 1, "pos": 0}) == lines


def test_where_nothing_says_how_much_is_safe_nothing_is_deleted(tmp_path):
    spooled(tmp_path, 0, 9)
    before = segments(tmp_path)
    for path in (tmp_path / "durable.json", *tmp_path.glob("*.sum")):
        path.unlink()
    with pytest.raises(StreamerError, match=r"durable.json is gone or cannot be read, and no"):
        ByteSpoolWriter(tmp_path)
    assert segments(tmp_path) == before


def test_a_spool_of_version_0_1_is_read(tmp_path):
    lines = spooled(tmp_path, 0, 9)
    durable = read_durable(tmp_path)
    (tmp_path / "durable.json").write_text(f"[{durable.segment}, {durable.size}, false]")
    for path in tmp_path.glob("*.sum"):
        path.unlink()
    lines += spooled(tmp_path, 20, 3)
    log = Log()
    check_stores(tmp_path, False, log, log.count)
    assert rest_of(tmp_path, {"segment": 1, "pos": 0}) == lines


def test_a_sum_of_what_was_not_published_goes_with_it(tmp_path):
    spooled(tmp_path, 0, 2)
    path = checksums_path(tmp_path, 1)
    with path.open("ab") as sums:
        sums.write(path.read_bytes()[:20])
    write_read_position(tmp_path, Position(1, 0))
    spooled(tmp_path, 2, 2)
    assert [one.lines for one in read_checksums(tmp_path, 1)] == [1, 2]
    check_stores(tmp_path, False, Log(), lambda name, by: None)
