"""Rows without processes: the same events, oracle and verdict, straight through the two stages.

`python -m tests.proof.kernel [row ...] [--seed N]`. Nothing is killed, and no Spark is started: the
rows of a micro-batch come to the shards in any order, and half-way the program "starts" again. It
takes a second or two, so that deliberate bugs in the windows are looked for by it in CI; and it has
windows that are longer than those which a run of a minute can close.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from streamer.config import parse_config
from streamer.core.message import NO_META
from streamer.engine.report.result_frame import Frame, FrameKind, sort_frames
from streamer.engine.report.stream_metrics import Snapshot
from streamer.engine.stage.pack_stage import PackStage, make_clock_rows
from streamer.engine.stage.shard_stage import ShardStages
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import make_plan
from streamer.sdk.input.replayable import RawMessages
from streamer.window import MicroBatchInfo, ShuffleRow
from streamer.window.contract import PIECE_BITS
from tests.proof.generator import BEGIN, SECOND, Event, Shape, event, events
from tests.proof.kinds import Hopping, Windows
from tests.proof.oracle import MicroBatch
from tests.proof.rows import ROWS
from tests.proof.state import Behind
from tests.proof.stream import TOPIC, Stream
from tests.proof.verdict import Output, ProofError, compare

MICRO_BATCHES = 32
_BACKLOG = 4
_MOST = 1200
_KILLED = 5
"""Every so many micro-batches one comes twice."""
_END = BEGIN + 24 * 3600 * SECOND
"""By then all windows are over."""
_OUT, _LATE = "/nowhere/out.jsonl", "/nowhere/late.jsonl"

CASES: dict[str, tuple[Windows, Shape]] = {
    **{row.name: (row.windows, row.shape) for row in ROWS},
    # Packs are joined when there are eight of a size in a pane: so it has to last long enough.
    "joined-packs": (Hopping(size=90, every=90), Shape()),
    "behind-grid": (Behind(before=Hopping()), Shape()),
}


class _Store(dict[tuple[int, int], bytes]):
    """A shard's state."""

    def get(self, pane: int, seq: int) -> bytes | None:  # type: ignore[override]
        return super().get((pane, seq))

    def put(self, pane: int, seq: int, value: bytes) -> None:
        self[pane, seq] = bytes(value)

    def delete(self, pane: int, seq: int) -> None:
        del self[pane, seq]


class _Source:
    """Reads a piece, which is the messages."""

    def read(self, piece: list[bytes], ex: Any) -> Iterator[RawMessages]:
        yield RawMessages(piece, NO_META)


@dataclass
class Kernel:
    """A stream of windows without a program around it.

    Attributes:
        windows: of the stream.
        shape: of its events.
        seed: decides everything.
        most: events of a micro-batch; there is a quarter of them in the smallest.
    """

    windows: Windows
    shape: Shape
    seed: int
    most: int = _MOST

    def __post_init__(self) -> None:
        sink = f'{{file: {{path: "{_OUT}", codec: lines}}}}'
        text = Stream("nowhere:1", self.windows, sink, Path(_LATE)).config()
        self._plan = make_plan(parse_config(text, "proof.yaml"))
        self._task_plan = TaskPlan.of(self._plan)
        self._stores = [_Store() for _ in range(self._plan.shard_count)]
        self._rng = random.Random(self.seed)
        self._events = events(self.seed, self.shape)
        self._sent: dict[tuple[int, int], Event] = {}
        self._ends: dict[int, int] = {}
        self._cuts: list[MicroBatch] = []
        self._statuses: dict[int, dict[str, Any]] = {}
        self._lines: dict[str, list[bytes]] = {_OUT: [], _LATE: []}

    def run(self) -> str:
        """Run micro-batches and close all windows; return the figures.

        Raises:
            ProofError: a promise was broken.
        """
        for number in range(MICRO_BATCHES):
            count = self._rng.randrange(self.most // 4, self.most)
            self._micro_batch(number, [next(self._events) for _ in range(count)])
        open_one = min(set(range(self.shape.partitions)) - self.shape.silent)
        self._micro_batch(MICRO_BATCHES, [(open_one, event(10**9, _END, "closer"))])
        expected = self.windows.replay(self._sent, self._cuts)
        statuses = list(self._statuses.values())
        now = Snapshot.of(statuses, {}, 0)
        farewell = {
            "messages": now.messages,
            "dropped": sum(now.dropped.values()),
            "held": sum(status["held"] for status in statuses),
        }
        output = Output(self._lines[_OUT], self._lines[_LATE], farewell)
        return compare(self._sent, expected, output, repeats=False)

    def _micro_batch(self, number: int, made: list[tuple[int, Event]]) -> None:
        t = BEGIN + (len(self._sent) + len(made)) * self.shape.step
        start = ("first", "second", "last")[number // (MICRO_BATCHES // 2)]
        if start == "last":
            t = _END
        # After the second start it works off what waited.
        backlog = 0 <= number - MICRO_BATCHES // 2 < _BACKLOG
        rows = [*make_clock_rows(self._plan, MicroBatchInfo(t, start, backlog))]
        for partition in sorted({partition for partition, _ in made}):
            rows += self._packed(partition, [one for there, one in made if there == partition], t)
        self._cuts.append(MicroBatch(t, dict(self._ends), start, backlog))
        self._rng.shuffle(rows)
        # What was killed before its commit leaves the state as it was, and comes again.
        killed = number % _KILLED == 0
        tried = self._shards(rows, t, [_Store(one) for one in self._stores]) if killed else None
        frames = self._shards(rows, t, self._stores)
        if tried is not None and _data(tried) != _data(frames):
            raise ProofError(f"micro-batch {number} gives something else when it comes again")
        for frame in frames:
            if frame.kind == FrameKind.STATUS:
                self._statuses[frame.shard] = orjson.loads(frame.body)
            elif frame.kind == FrameKind.DATA:
                self._lines[frame.route] += filter(None, frame.body.split(b"\n"))

    def _shards(self, rows: list[ShuffleRow], t: int, stores: list[_Store]) -> list[Frame]:
        """Let the shards take rows, those behind others what these make of theirs."""
        rows, frames = list(rows), list[Frame]()
        stages = ShardStages(self._task_plan, now=lambda: t)
        # A buffer stands after the one that it takes from, and so do its shards.
        for shard, store in enumerate(stores):
            mine = [row for row in rows if row.shard == shard]
            for made in stages.frames(shard, mine, store):
                if isinstance(made, Frame):
                    frames.append(made)
                else:
                    rows.append(made)
        return sort_frames(frames)

    def _packed(self, partition: int, found: list[Event], t: int) -> Iterator[ShuffleRow]:
        """Pack what a partition brings: a piece of the micro-batch for each."""
        first, piece = self._ends.get(partition, 0), partition
        for offset, one in enumerate(found, first):
            self._sent[partition, offset] = one
        self._ends[partition] = first + len(found)
        raws, name = [one.raw for one in found], f"{TOPIC}/{partition}"
        arrival = piece << PIECE_BITS | first
        source_piece = SourcePiece(_Source(), piece, raws, arrival, name)
        return PackStage(self._task_plan).rows(source_piece, t)


def _data(frames: list[Frame]) -> list[tuple[str, bytes]]:
    """Return what goes to outputs, in order."""
    return [(frame.route, frame.body) for frame in frames if frame.kind == FrameKind.DATA]


def main() -> int:
    """Run rows and print their verdicts, as `tests.proof` does."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof.kernel", description=__doc__)
    parser.add_argument("rows", nargs="*", choices=(*CASES, []), metavar="row")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    broken = 0
    for name in given.rows or CASES:
        began = time.monotonic()
        try:
            verdict, text = "holds", Kernel(*CASES[name], given.seed).run()
        except AssertionError as e:
            verdict, text, broken = "BROKEN", str(e), broken + 1
        took = time.monotonic() - began
        print(f"{name:18} {verdict:7} {took:5.0f} s  {text}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
