"""What a stream sees of its spool when it begins, and passes over when it is asked to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.store import SpoolStore
from streamer.core.errors import StreamerError
from streamer.sdk.input.replayable import Limit
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.checkpoint.spool_check import open_checked_input
from tests.components.inputs.rooms import lodging
from tests.connectors.spool.test_damage import Log, filled, flip, read_rest, read_some, segments
from tests.spark.checkpoint.test_generations import FITS, logged


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Checkpoint]:
    checkpoint = Checkpoint(tmp_path / "c")
    checkpoint.bind(FITS, {})
    yield checkpoint
    checkpoint.close()


class Input:
    """One that lands what it receives."""

    def open(self, room: Any) -> SpoolSource:
        SpoolStore(room.directory, segment_bytes=600)
        return SpoolSource(room.directory)


def opened(checkpoint: Checkpoint, log: Log) -> SpoolSource:
    with lodging(checkpoint.spool) as lodged:
        found = open_checked_input(checkpoint, Input(), lodged.room, log)
    for name, by in lodged.counts.items():
        log.count(name, by)
    assert isinstance(found, SpoolSource)
    return found


def test_damage_ends_a_start_and_is_passed_over_by_the_one_that_is_asked_to(held) -> None:
    raws, log = filled(held.spool), Log()
    start, read = read_some(held.spool, 9)
    logged(held.spark, "offsets", 0, {"data": start})
    flip(segments(held.spool)[1], 300)
    with pytest.raises(StreamerError, match="2.seg is damaged at byte"):
        opened(held, log)
    held.should_skip_damaged = True
    opened(held, log)
    held.should_skip_damaged = False
    opened(held, log)
    assert len(read) + len(read_rest(held.spool, start)) == len(raws) - log.counts["input_lost"]
    assert len(log.lines) == 1


@pytest.mark.parametrize("planned", [True, False])
def test_a_spool_that_was_emptied_is_told_from_one_that_was_never_there(held, planned) -> None:
    opened(held, Log())
    filled(held.spool)
    start, _ = read_some(held.spool, 9)
    if planned:
        logged(held.spark, "offsets", 0, {"data": start})
    shutil.rmtree(held.spool)
    log = Log()
    if not planned:
        opened(held, log)
        return
    with pytest.raises(StreamerError, match="does not hold what was read of it"):
        opened(held, log)
    held.should_skip_damaged = True
    source = opened(held, log)
    more = filled(held.spool, 4)
    assert read_rest(held.spool, start) == more
    assert source.latest_offset(start, 0, Limit()).waiting == len(more)
