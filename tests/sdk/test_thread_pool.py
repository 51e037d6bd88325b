"""Work in threads: at once, in order, and what is said in it as if it were done in turn."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

from streamer.components.processors.noop import NoopProcessor
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing import instrument
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.sdk.thread_pool import ComponentPool


class Said:
    """A run that writes down what is said in it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.counts: list[tuple[str, int]] = []
        self.ex = Execution(lambda: 0, self._log, self._count)

    def _log(self, level: str, text: str, fields: Any) -> None:
        self.lines.append(text)

    def _count(self, name: str, by: int = 1, **labels: str) -> None:
        self.counts.append((name, by))


def test_pieces_are_worked_on_at_once_and_come_out_in_order() -> None:
    gate = threading.Barrier(5)

    def work(lane: int, piece: int, ex: Execution) -> int:
        gate.wait(30)  # passes only when all five are here
        return piece * 10

    lanes = ComponentPool(itertools.count().__next__)
    assert lanes.map(work, [1, 2, 3, 4, 5], Said().ex) == [10, 20, 30, 40, 50]


def test_no_more_pieces_than_allowed_are_worked_on_at_once() -> None:
    lock, now, most = threading.Lock(), 0, 0
    gate = threading.Barrier(2)

    def work(lane: int, piece: int, ex: Execution) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        gate.wait(30)
        with lock:
            now -= 1
        return lane

    lanes = ComponentPool(itertools.count().__next__, max_threads=2)
    assert set(lanes.map(work, list(range(6)), Said().ex)) == {0, 1}
    assert most == 2


def test_nobody_shares_a_lane() -> None:
    lanes: ComponentPool[list[int]] = ComponentPool(list, max_threads=3)

    def work(lane: list[int], piece: int, ex: Execution) -> bool:
        lane.append(piece)
        alone = len(lane) == 1
        lane.clear()
        return alone

    assert all(lanes.map(work, list(range(200)), Said().ex))


def test_what_is_said_joins_in_the_order_of_the_work() -> None:
    said, turn = Said(), threading.Event()

    def work(lane: None, piece: int, ex: Execution) -> None:
        if piece == 0:
            assert turn.wait(30)
        ex.log("INFO", f"line {piece}", {})
        ex.count("seen", piece)
        if piece == 1:
            turn.set()

    ComponentPool(lambda: None).map(work, [0, 1], said.ex)
    assert said.lines == ["line 0", "line 1"]
    assert said.counts == [("seen", 0), ("seen", 1)]


def test_what_components_have_done_is_added_up() -> None:
    origin = ComponentRef(ParsedComponent(Kind.PROCESSOR, "noop", path="pipeline.processors.0"))
    said = Said()

    def work(lane: Any, piece: int, ex: Execution) -> None:
        lane.process([Message(b"")] * piece, ex)

    ComponentPool(lambda: instrument(NoopProcessor(), origin), max_threads=4).map(
        work, [1, 2, 3], said.ex
    )
    tally = said.ex.stats_of(origin.key)
    assert (tally.received, tally.batches_received, tally.sent) == (6, 3, 6)
    assert sum(tally.buckets.values()) == 3


def test_the_first_failure_is_raised_when_all_are_done() -> None:
    done = []

    def work(lane: None, piece: int, ex: Execution) -> None:
        if piece in (1, 2):
            raise ValueError(piece)
        done.append(piece)

    with pytest.raises(ValueError, match="1"):
        ComponentPool(lambda: None, max_threads=2).map(work, [0, 1, 2, 3], Said().ex)
    assert sorted(done) == [0, 3]
