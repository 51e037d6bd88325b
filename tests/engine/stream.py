"""A whole stream without Spark: stages over stores in memory, on a clock that the test moves."""

from __future__ import annotations

import copy
import io
import json
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.engine.driver.delivery import Delivery
from streamer.engine.driver.delivery_setup import (
    DeliveredStream,
    DeliveryClocks,
    DeliveryListeners,
    DeliverySinks,
)
from streamer.engine.driver.rejections import Rejections
from streamer.engine.driver.results_factory import ResultsWriter
from streamer.engine.driver.writers import StreamWriter
from streamer.engine.planner.planner_channels import (
    FROM_THE_START,
    AggregatesFrom,
    MicroBatchOffset,
    next_aggregates_from,
)
from streamer.engine.report.metric_labels import EndpointLabels
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.engine.report.stream_metrics import Snapshot
from streamer.engine.stage.pack_stage import PackStage, make_clock_rows
from streamer.engine.stage.replay import replay_rejected
from streamer.engine.stage.shard_stage import ShardStage
from streamer.engine.stage.stateless_stage import StatelessStage
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import Plan, make_plan
from streamer.plan.rejection import replays
from streamer.sdk.input.replayable import Limit, Offset
from streamer.window import DictStore
from streamer.window.settings.back_pressure import BackPressure

PIECES = 3
ALL = Limit()


@dataclass(frozen=True)
class MicroBatch:
    """What is in Spark's log of a micro-batch."""

    start: Offset
    end: Offset
    t: int
    start_id: str
    ended: bool
    folded: AggregatesFrom


@dataclass(frozen=True)
class MemoryPlace:
    """A place of a checkpoint that is not on this machine, in memory."""

    files: dict[str, bytes] = field(default_factory=dict)
    name: str = ""

    def __truediv__(self, name: str) -> MemoryPlace:
        return MemoryPlace(self.files, name)

    def glob(self, pattern: str) -> list[MemoryPlace]:
        return [
            MemoryPlace(self.files, name) for name in sorted(self.files) if fnmatch(name, pattern)
        ]

    def read_bytes(self) -> bytes:
        try:
            return self.files[self.name]
        except KeyError:
            raise FileNotFoundError(self.name) from None

    def put(self, body: bytes) -> None:
        self.files[self.name] = body

    def delete(self) -> None:
        self.files.pop(self.name, None)


@dataclass
class State:
    """What outlives the program: the position, the shards' state, and rejected messages."""

    offset: Offset | None = None
    stores: list[DictStore] = field(default_factory=list)
    number: int = 0
    rejected: Any = field(default_factory=MemoryPlace)
    folded: AggregatesFrom = FROM_THE_START


class Run:
    """One start of the program; `state` is what an earlier one left."""

    def __init__(
        self,
        text: str,
        state: State | None = None,
        start_id: str = "first",
        results: ResultsWriter | None = None,
        writers: Callable[[Plan], list[Any]] | None = None,
    ) -> None:
        self.plan = make_plan(parse_config(text, "test.yaml"))
        source: Any = build_context(self.plan.resources).build(self.plan.input)
        self.source = source.continue_from([]) if self.plan.input.name == "file" else source
        self.state = state or State(stores=[DictStore() for _ in range(self.plan.shards)])
        if self.state.offset is None:
            self.state.offset = self.source.initial_offset()
        self.start_id = start_id
        self.chance = random.Random(7)
        self.outs = [io.BytesIO() for _ in self.plan.driver_outputs]
        self.log: list[tuple[str, str, dict[str, Any]]] = []
        self.clock = 0
        self.woken = 0
        self.answered: list[tuple[Any, Any]] = []
        self.rejections = Rejections(
            self.state.rejected,
            lambda *line: self.log.append(line),
            resend=self.resend,
            wake=self._wake,
            replays=replays(self.plan.input, self.plan.resources),
            clock=lambda: self.clock,
            start_work=lambda work: work(),
        )
        self.delivery = Delivery(
            self.writers() if writers is None else writers(self.plan),
            lambda *line: self.log.append(line),
            lambda: False,
            listeners=DeliveryListeners(on_answers=lambda *said: self.answered.append(said)),
            sinks=DeliverySinks(rejections=self.rejections, results=results),
            stream=DeliveredStream(
                endpoint_labels=EndpointLabels.of(self.plan), window=self.plan.window
            ),
            clocks=DeliveryClocks(wall_clock=lambda: self.clock),
        )
        self.at: int | None = None

    def writers(self) -> list[Any]:
        return [StreamWriter(out) for out in self.outs]

    def resend(self, rejected: Any) -> list[Frame]:
        """Send rejected messages again, as a worker does."""
        return list(
            replay_rejected(pickle.loads(pickle.dumps(self.plan)), rejected, lambda: self.clock)
        )

    def _wake(self) -> None:
        self.woken += 1

    def step(self, t: int, limit: Limit = ALL, tries: int = 1) -> MicroBatch:
        """Plan a micro-batch at a time, run it, and run it again as often as it is tried."""
        assert self.state.offset is not None
        latest = self.source.latest_offset(self.state.offset, t, limit)
        ends = [s.get("newest_end") for s in self.delivery.statuses.values()]
        ends = [end for end in ends if end]
        known = len(self.delivery.statuses) >= self.plan.shards
        folded = next_aggregates_from(
            self.state.folded, self.plan.aggregation.identity, max(ends, default=None), known
        )
        batch = MicroBatch(
            self.state.offset, latest.offset, t, self.start_id, latest.is_ended, folded
        )
        before = copy.deepcopy(self.state.stores)
        frames = self.frames(batch)
        for _ in range(tries - 1):
            after, self.state.stores = self.state.stores, copy.deepcopy(before)
            assert _lasting(self.frames(batch)) == _lasting(frames), "a replay gives the same"
            assert [s.values for s in self.state.stores] == [s.values for s in after]
        self.at = t
        self.delivery.deliver(self.state.number, frames)
        self.state.offset = latest.offset
        self.state.folded = folded
        self.state.number += 1
        self.source.on_committed(latest.offset)
        return batch

    def frames(self, batch: MicroBatch) -> list[Frame]:
        """Run a micro-batch; the rows of a shuffle come in any order."""
        pieces = list(enumerate(self.source.split(batch.start, batch.end, PIECES)))
        # What workers get has been pickled.
        plan, source, pieces = pickle.loads(pickle.dumps((self.plan, self.source, pieces)))
        task_plan = TaskPlan.of(plan)
        pieces = [SourcePiece(source, number, content) for number, content in pieces]
        if plan.window is None:
            stage = StatelessStage(task_plan)
            found = [frame for piece in pieces for frame in stage.frames(piece)]
            return [*found, stage.status(batch.ended, batch.t)]
        pack_stage = PackStage(task_plan)
        rows = [row for piece in pieces for row in pack_stage.rows(piece, batch.t, batch.folded)]
        offset = {"start": batch.start_id, "ended": batch.ended, "time": batch.t}
        # It was at work all the time.
        busy = ((self.at or batch.t, batch.t),)
        offset["pressure"] = BackPressure(busy, 0, busy[0][1] - busy[0][0]).to_fields()
        rows += make_clock_rows(plan, MicroBatchOffset.from_fields(offset).batch_info())
        self.chance.shuffle(rows)
        shard_stage = ShardStage(task_plan)
        return [
            frame
            for shard, store in enumerate(self.state.stores)
            for frame in shard_stage.frames(
                shard, [row for row in rows if row.shard == shard], store
            )
        ]

    def printed(self, output: int = 0) -> list[Any]:
        """Return the documents written since the last call."""
        out = self.outs[output]
        lines = out.getvalue().splitlines()
        out.seek(0)
        out.truncate()
        return [_document(line) for line in lines]

    def said(self, text: str) -> list[tuple[str, str, dict[str, Any]]]:
        return [line for line in self.log if text in line[1]]

    @property
    def snapshot(self) -> Snapshot:
        delivery = self.delivery
        return Snapshot.of(delivery.statuses.values(), delivery.metrics.counts, delivery.batch)


def _lasting(frames: list[Frame]) -> list[Frame]:
    """Return all that a replay gives again: how long something takes is another time each time."""
    timed = (FrameKind.TIMING, FrameKind.WORK, FrameKind.TASK_TIME)
    return sorted(frame for frame in frames if frame.kind not in timed)


def _document(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line


def write_lines(path: Path, documents: list[Any]) -> None:
    """Append documents to a file, one a line; bytes as they are."""
    with path.open("ab") as file:
        for document in documents:
            line = document if isinstance(document, bytes) else json.dumps(document).encode()
            file.write(line + b"\n")
