"""Rows of a shard's results for the buffers that take them, as stage 1 makes of messages.

Each shard says to every shard of such a buffer how early the results may be that it has yet to
give. The least of that is the buffer's clock: no window behind it waits longer than it must, and
none closes too early.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from streamer.bloblang import compile_mapping
from streamer.core.component_stats import ComponentStats
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.timestamps import Timestamp, parse_rfc3339
from streamer.engine.report.result_frame import Payload
from streamer.engine.stage.output_stage import Stage
from streamer.engine.stage.pack_stage import make_packer
from streamer.engine.stage.task_input import TaskPlan
from streamer.plan import Plan
from streamer.plan.buffer_chain import find_readers, times_of_results, upstream_time
from streamer.sdk.component_ref import ComponentRef
from streamer.window import MicroBatchInfo, Packer, RowKind, ShuffleRow, Status
from streamer.window.contract import PIECE_BITS, UpstreamInfo
from streamer.window.evaluate.message_slots import PieceOrigin
from streamer.window.pack.window_metadata import WINDOW_END, WINDOW_MAX_TIME
from streamer.window.settings.result_times import shift_of_results

_MESSAGES_AT_ONCE: Final = 4096
_FIRST_RESULT_PIECE: Final = 1 << 21
"""Numbers of pieces of the input are smaller: a micro-batch has a few for each partition."""


class _NoInputs(NamedTuple):
    """Inputs of a mapping besides the document (`CompiledMapping.uses`)."""

    now: bool = False


class WindowTimeMapping:
    """The time of a result by its window: its last instant (`CompiledMapping`).

    That of a joined message may be its event time instead.
    """

    text = "the time of its window"
    doc_fn = None
    uses = _NoInputs()

    def __init__(self, shift: int, name: str = WINDOW_END) -> None:
        """Take what is added to the time, ns, and the metadata that it stands in."""
        self._shift = shift
        self._name = name

    def query(self, batch: Batch, index: int, ex: Execution) -> Any:
        """Return the time; raises ValueError where the result does not know its window."""
        time = batch[index].meta.get(self._name)
        if not isinstance(time, str):
            raise ValueError(
                f"it has no metadata {self._name}: keep them in the pipeline of the buffer before, "
                "or write a timestamp_mapping"
            )
        return Timestamp(parse_rfc3339(time).ns + self._shift)


class _Reader:
    """One buffer that takes the results, and the packer of this task's for it."""

    def __init__(
        self, stream: TaskPlan, number: int, source: int, shard: int, ex: Execution
    ) -> None:
        plan = stream.plan
        one = plan.buffers[number]
        self.number = number
        piece, kind = shard, RowKind.PACK
        if one.windows.window is not None and (join := one.windows.window.join) is not None:
            # Results come after the messages of the input, those of each side by themselves.
            is_right = plan.buffers[source].label == join.right
            kind = RowKind.RIGHT if is_right else RowKind.PACK
            piece += _FIRST_RESULT_PIECE + plan.shards * is_right
        self._task_plan = stream.of_buffer(number)
        self._first_shard = plan.shards * number
        self._tally: ComponentStats = ex.stats_of(ComponentRef(one.component).key)
        texts = (self._task_plan.plan.timestamp, self._task_plan.plan.filter)
        # What a mapping may see of other messages depends on what is packed together.
        self._is_joinable = not any(text and compile_mapping(text).uses.batch for text in texts)
        self._packer: Packer = make_packer(
            self._task_plan,
            PieceOrigin(piece << PIECE_BITS, str(piece).encode(), kind, follows_windows=True),
            timestamp=_make_time_mapping(plan, number, source),
        )
        self._arrival = piece << PIECE_BITS
        self._waiting: list[Message] = []

    def add(self, batch: Batch, batch_time: int, ex: Execution) -> None:
        """Take a batch of results."""
        self._tally.received += len(batch)
        self._tally.batches_received += 1
        self._waiting += batch
        if len(self._waiting) >= _MESSAGES_AT_ONCE or not self._is_joinable:
            self._pack(batch_time, ex)

    def _pack(self, batch_time: int, ex: Execution) -> None:
        if self._waiting:
            self._packer.add_messages(self._waiting, self._arrival, batch_time, ex)
            self._arrival += len(self._waiting)
            self._waiting = []

    def take_rows(self, batch_time: int, ex: Execution) -> Iterator[ShuffleRow]:
        """Return the rows of all that was taken."""
        self._pack(batch_time, ex)
        for row in self._packer.flush_rows():
            yield row._replace(shard=row.shard + self._first_shard)

    def clock_rows(self, info: MicroBatchInfo, shards: int) -> Iterator[ShuffleRow]:
        """Return the rows that tell the shards of the buffer the time."""
        for shard in range(self._first_shard, self._first_shard + shards):
            yield info.to_row(shard)


def _make_time_mapping(plan: Plan, number: int, source: int) -> WindowTimeMapping | None:
    """Return what gives results their times; None where a mapping of the config does."""
    window = plan.buffers[source].windows.window
    assert window is not None
    times = times_of_results(plan, number, source)
    if times == "mapped":
        return None
    if times == "event":
        return WindowTimeMapping(0, WINDOW_MAX_TIME)
    return WindowTimeMapping(shift_of_results(window))


class ResultRows:
    """Takes the results that one shard of a buffer gives in a micro-batch."""

    def __init__(
        self, stream: TaskPlan, number: int, shard: int, info: MicroBatchInfo, ex: Execution
    ) -> None:
        """Prepare.

        Args:
            stream: the plan of the stream.
            number: the buffer's.
            shard: the shard's, among those of the buffer.
            info: of the micro-batch.
            ex: the run of the task.
        """
        self._plan: Plan = stream.plan
        self._number = number
        self._info = info
        # In the mappings of a buffer, now() is the micro-batch's time.
        self._ex = Execution(lambda: info.batch_time, ex.log, ex.count)
        self._readers = [
            _Reader(stream, reader, number, shard, ex)
            for reader in find_readers(self._plan, number)
        ]

    def take_from(self, stage: Stage | None) -> Stage:
        """Return an output that gives the results to these rows first.

        Args:
            stage: where they go besides; None for nowhere.
        """
        return _TakingStage(self, stage) if self._readers else stage or _NO_STAGE

    def add(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Take batches as they pass."""
        for batch in batches:
            if batch:
                for reader in self._readers:
                    reader.add(batch, self._info.batch_time, self._ex)
            yield batch

    def rows(self, status: Status, ends_with_input: bool) -> Iterator[ShuffleRow]:
        """Return the rows of all that was taken, and those that tell the time.

        Args:
            status: of the shard, after the micro-batch.
            ends_with_input: the windows give all that they hold when nothing more comes to them.
        """
        info = self._info
        is_done = info.ended and (ends_with_input or not status.held)
        for reader in self._readers:
            yield from reader.take_rows(info.batch_time, self._ex)
            time = upstream_time(self._plan, reader.number, self._number, status.next_end)
            upstream = UpstreamInfo(time, info.input_ended)
            yield from reader.clock_rows(
                replace(info, ended=is_done, upstream=upstream, sources=()), self._plan.shards
            )


class _TakingStage:
    """An output before which results are taken for other buffers."""

    def __init__(self, rows: ResultRows, stage: Stage | None) -> None:
        self._rows = rows
        self._stage = stage

    def payloads(self, batches: Iterable[Batch], order: int, ex: Execution) -> Iterator[Payload]:
        """Take batches, and give them to the output."""
        taken = self._rows.add(batches)
        if self._stage is not None:
            yield from self._stage.payloads(taken, order, ex)
            return
        for _ in taken:
            pass

    def finish(self) -> None:
        """Finish the output's part."""
        if self._stage is not None:
            self._stage.finish()


class _NoStage:
    """An output of a buffer that has none."""

    def payloads(self, batches: Iterable[Batch], order: int, ex: Execution) -> Iterator[Payload]:
        """Let batches go."""
        for _ in batches:
            pass
        yield from ()

    def finish(self) -> None:
        """Nothing is left to do."""


_NO_STAGE: Final = _NoStage()
