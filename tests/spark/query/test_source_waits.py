"""The planner waits for data and is woken: what comes is planned at once, whenever it comes."""

from __future__ import annotations

import pickle
import random
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamer.connectors.merged_source import MergedSource
from streamer.connectors.spool.blocks import pack_each
from streamer.connectors.spool.processed_source import ProcessedSource
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.store import SpoolStore
from streamer.core.durations import MILLISECOND, SECOND
from streamer.engine.planner.pacing import PacingSettings
from streamer.engine.planner.planner_channels import PlannerChannel
from streamer.engine.planner.trigger import BatchClock
from streamer.engine.planner.wake_ups import MAX_WAIT_S
from streamer.sdk.input.replayable import POLL_INTERVAL, Limit, Offset, next_poll_of
from streamer.spark.query.drain_source import DrainSource
from streamer.spark.query.source import SourcePlan, StreamReader
from streamer.window import SystemWindow
from tests.components.inputs.reading import built
from tests.slowness import wall_slowness
from tests.spark.query.empty_source import EmptySource

_TURNS = 200
_FOREVER = 3600 * SECOND


class Planned:
    """A planner of one source, as it is in its process, and the driver's end of its channel."""

    def __init__(self, directory: Path, source: Any, *windows: SystemWindow, **more: Any) -> None:
        self.channel = PlannerChannel(directory / "signals")
        self.channel.clear()
        plan = SourcePlan(source, windows, "a", self.channel, Limit(), PacingSettings(0), 2)
        clock = BatchClock(lambda: time.time_ns() + self.shift)
        self.shift = 0
        self.reader = StreamReader(pickle.loads(pickle.dumps(plan)), clock, _FOREVER)
        # The first one of a start always has one.
        self.at = self.look(self.reader.initialOffset())

    def look(self, start: dict[str, Any]) -> dict[str, Any]:
        return self.reader.latestOffset(start, None)  # type: ignore[arg-type]

    def seconds_until(self, act: Callable[[], object], after: float = 0.02) -> float:
        """Return how long a wait goes on after something was done during it."""
        done: list[float] = []

        def do() -> None:
            time.sleep(after)
            done.append(time.monotonic())
            act()

        thread = threading.Thread(target=do)
        thread.start()
        self.at = self.look(self.at)
        ended = time.monotonic()
        thread.join()
        return ended - done[0]


def store_in(directory: Path, planned: Callable[[], Planned]) -> SpoolStore:
    return SpoolStore(directory, on_append=lambda: planned().channel.wake_planner())


def test_a_message_that_is_spooled_at_any_moment_is_planned_at_once(tmp_path: Path) -> None:
    store = store_in(tmp_path / "spool", lambda: planned)
    planned = Planned(tmp_path, SpoolSource(tmp_path / "spool"))
    chance, appended, taken, waits = random.Random(31), 0, threading.Semaphore(0), []

    def receive() -> None:
        nonlocal appended
        for _ in range(_TURNS):
            taken.acquire()
            time.sleep(chance.random() / 2_000)
            appended = time.monotonic_ns()
            store.append([pack_each([b"x"], {})])

    receiver = threading.Thread(target=receive)
    receiver.start()
    for _ in range(_TURNS):
        taken.release()
        before = planned.at["data"]
        planned.at = planned.look(planned.at)
        waits.append((time.monotonic_ns() - appended) / SECOND)
        assert planned.at["data"]["total"] == before["total"] + 1
    receiver.join()
    assert max(waits) < MAX_WAIT_S / 2, "one has waited for the bound"
    assert statistics.median(waits) < 0.02 * wall_slowness()


def test_a_stop_a_request_and_what_is_due_end_the_wait(tmp_path: Path) -> None:
    planned = Planned(tmp_path, EmptySource(), SystemWindow(size=100 * MILLISECOND))
    update, slowness = planned.channel.driver.update, wall_slowness()
    waits = [planned.seconds_until(lambda: update(requested_at=time.time_ns())) for _ in range(5)]
    assert statistics.median(waits) < 0.1 * slowness
    # A window is due on time, though that is known only during the wait.
    tick, late = planned.at["tick"], []
    for _ in range(3):
        due = time.time_ns() + 150 * MILLISECOND
        planned.seconds_until(lambda due=due: update(due=due))
        late.append((time.time_ns() - due) / SECOND)
        assert planned.at["tick"] > tick
        tick = planned.at["tick"]
        update(due=None)
        time.sleep(0.1)
    assert min(late) >= 0 and statistics.median(late) < 0.1 * slowness
    waits = [planned.seconds_until(planned.channel.stop)]
    waits += [planned.seconds_until(lambda: None, 0) for _ in range(4)]
    assert statistics.median(waits) < 0.1 * slowness


def test_a_window_closes_soon_after_the_clock_was_set_and_data_comes_at_once(
    tmp_path: Path,
) -> None:
    store = store_in(tmp_path / "spool", lambda: planned)
    planned = Planned(tmp_path, SpoolSource(tmp_path / "spool"), SystemWindow(size=10 * SECOND))
    planned.channel.driver.update(due=time.time_ns() + 3600 * SECOND)
    assert planned.seconds_until(lambda: setattr(planned, "shift", 3600 * SECOND)) < 2 * MAX_WAIT_S
    planned.channel.driver.update(due=None)
    back = planned.seconds_until(
        lambda: (setattr(planned, "shift", 0), store.append([pack_each([b"x"], {})]))
    )
    assert back < MAX_WAIT_S / 2
    assert planned.at["data"]["total"] == 1


class Polled(EmptySource):
    """A source that says nothing of when it has something."""

    watch = None  # type: ignore[assignment]
    next_poll = None  # type: ignore[assignment]


class Pushed(EmptySource):
    """A source that wakes the planner by itself."""

    def watch(self, wake: Callable[[], None]) -> None:
        self.wake = wake

    def next_poll(self, start: Offset, now: int) -> int | None:
        return start.get("at")


def test_sources_that_hold_others_wait_as_these_do() -> None:
    class Plain:
        pass

    assert next_poll_of(Plain(), {}, 7) == 7 + POLL_INTERVAL, "nobody knows"
    one, other = Pushed(), Pushed()
    merged = MergedSource({"0": one, "1": ProcessedSource(other, [])})
    drained = DrainSource(merged, to_end=True)
    drained.watch(len)  # type: ignore[arg-type]
    assert one.wake is other.wake is len  # type: ignore[comparison-overlap]
    assert drained.next_poll({"0": {"at": 9}, "1": {"at": 8}}, 7) == 8
    assert drained.next_poll({"0": {}, "1": {"at": 8}}, 7) == 8
    assert drained.next_poll({"0": {}, "1": {}}, 7) is None
    assert DrainSource(merged, to_end=False).next_poll({"0": {"at": 9}}, 7) is None


def test_messages_by_the_clock_are_polled_when_they_are_due() -> None:
    now = 1_700_000_000 * SECOND
    for text, expected in (
        ("interval: 3s", now + 3 * SECOND),
        ("interval: 3s, count: 5", now + 3 * SECOND),
        ("interval: 3s, count: 1", None),
        ("interval: '@every 20s'", now + 20 * SECOND),
    ):
        source = built(f"input: {{generate: {{mapping: 'root = 1', {text}}}}}")
        latest = source.latest_offset(source.initial_offset(), now, Limit())
        assert next_poll_of(source, latest.offset, now) == expected, text
    source = built(
        "input: {generate: {mapping: 'root = if count(\"a\") > 1 {1} else {deleted()}', "
        "interval: 3s, count: 2}}"
    )
    start = source.initial_offset()
    for number in range(2):
        at = now + number * 3 * SECOND
        latest = source.latest_offset(start, at, Limit())
        assert next_poll_of(source, start, at) == at + 3 * SECOND
        assert not latest.is_ended
