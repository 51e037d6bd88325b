"""States in checkpoints of all versions are listed, also of a stream while it runs.

The oracles are the messages, which are known by their numbers, and what the stream says of itself.
"""

from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.stream_metrics import Snapshot
from streamer.plan import make_plan
from streamer.service.monitoring.state_windows import list_state_windows
from streamer.service.run.earlier_states import EarlierStates
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.checkpoint.relocation import update_moved_paths
from streamer.spark.checkpoint.state_history import list_batch_times, open_state
from tests.spark.conftest import Runner
from tests.spark.upgrades.streams import config_of, position, streams_of
from tests.spark.upgrades.test_upgrades import ARCHIVES, VERSIONS

NAME = "tumbling_keyed"
SIZE_S, LATENESS_S = 4, 1
pytestmark = pytest.mark.spark


@pytest.mark.parametrize("version", VERSIONS)
def test_the_states_of_another_version_are_listed(
    session: Any, tmp_path: Path, version: str
) -> None:
    with tarfile.open(ARCHIVES / version / f"{NAME}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    update_moved_paths(tmp_path / "checkpoint" / "spark")
    text = config_of(streams_of(version)[NAME], str(tmp_path / "out"), 1)
    plan = make_plan(parse_config(text, "test.yaml"))
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    try:
        times = list_batch_times(checkpoint)
        assert times == sorted(times) and len(times) > 1
        with open_state(lambda: session, checkpoint, plan, None) as stores:
            listed = list_state_windows(plan, stores)
    finally:
        checkpoint.close()
    found = {(one["key"], one["start"]): one["messages"] for one in listed}
    assert found == open_windows(position(tmp_path / "checkpoint"))


def open_windows(messages: int) -> dict[tuple[str, str], int]:
    """Return how many messages are in each window that is open after the first so many."""
    numbers = [number for number in range(1, messages + 1) if number % 50]  # others are late
    times = {number: (number + number * 7 % 5) / 10 for number in numbers}
    clock = max(times.values()) - LATENESS_S
    starts = {number: int(at // SIZE_S) * SIZE_S for number, at in times.items()}
    return Counter(
        (f"k{number % 5}", format_rfc3339(start * SECOND))
        for number, start in starts.items()
        if start + SIZE_S > clock
    )


def test_states_are_read_beside_the_stream_that_runs(
    session: Any, run_stream: Runner, tmp_path: Path
) -> None:
    text = config_of(streams_of(VERSIONS[-1])[NAME], str(tmp_path / "out"))
    text = text.replace("interval: 200ms", "interval: 10ms").replace(
        "trigger_interval: 5s", "trigger_interval: 200ms"
    )
    held: dict[int, int] = {}
    read: list[tuple[int, int]] = []
    changed: list[int] = []
    states = EarlierStates()

    def watch(stream: Any) -> None:
        shot: Snapshot = stream.snapshot()
        held[shot.batch] = shot.held
        if shot.batch < 3 or read:
            return
        host: Any = SimpleNamespace(
            checkpoint=stream._checkpoint, session=session, stream=stream, current_stream=stream
        )
        batches = [one["micro_batch"] for one in states.list_batches(host)]
        for batch in batches[-2:]:
            listing = states.list_windows(host, batch, None, 0)
            assert listing.is_complete
            read.append((batch, sum(one["messages"] for one in listing.windows)))
        changed.append(len(states.compare(host, (batches[-2], batches[-1]), None, 0)))

    last = run_stream(text, watch=watch, until=lambda shot: bool(read) and shot.batch > read[-1][0])
    assert len(read) == 2 and changed[0] > 0
    # The stream goes on, and what was read is what it said of itself.
    assert last.last.batch > read[-1][0]
    known = [(batch, messages) for batch, messages in read if batch in held]
    assert known and all(held[batch] == messages for batch, messages in known)
