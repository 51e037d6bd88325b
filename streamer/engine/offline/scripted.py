"""A stream without Spark, one micro-batch at a time, on a clock that the caller moves.

The stages are those that Spark runs (`pack_stage`, `shard_stage`, `stateless_stage`); the state is
a dict, and what reaches the outputs is kept as messages, after the outputs' processors. A stream
with windows has one shard here, so that what closes together comes out in order of arrival on every
machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import ClassVar, NamedTuple

from streamer.core.execution import Execution
from streamer.core.log_format import LogLine
from streamer.core.message import Batch, Message
from streamer.engine.driver.delivery import Delivery
from streamer.engine.driver.delivery_setup import DeliveredStream
from streamer.engine.report.metric_labels import EndpointLabels
from streamer.engine.report.result_frame import Frame, Payload
from streamer.engine.report.stream_metrics import Snapshot
from streamer.engine.stage.clock_sources import name_clock_source, takes_label
from streamer.engine.stage.output_stage import reject_failed
from streamer.engine.stage.pack_stage import PackStage, make_clock_rows, split_task_plan
from streamer.engine.stage.shard_stage import ShardStages
from streamer.engine.stage.stateless_stage import StatelessStage
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import Plan
from streamer.plan.buffer_chain import plan_of_buffer
from streamer.sdk.input.replayable import Chunk
from streamer.sdk.processing import Processor, run
from streamer.sdk.spec import ParsedComponent
from streamer.window import DictStore, MicroBatchInfo
from streamer.window.settings.back_pressure import BackPressure


class ScriptedMessage(NamedTuple):
    """A message as it comes out of the input, after the input's processors.

    Attributes:
        message: the message.
        partition: of the input's partitions.
        input: the label of the input, where there are several and it matters.
    """

    message: Message
    partition: int = 0
    input: str = ""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of a micro-batch.

    Attributes:
        batches: what the output got, in order, after its processors.
        dropped: what `late_output` got, in order, after its processors.
        by_buffer: of several buffers, by label, what came out of each, also where only other
            buffers take it.
    """

    batches: list[Batch]
    dropped: Batch
    by_buffer: Mapping[str, list[Batch]] = field(default_factory=dict)


class ScriptedStream:
    """One stream, from its buffer on; the input and its processors are left out.

    Attributes:
        stores: by shard, the state; of several buffers, that of the first one's shards first.

    >>> from streamer.config.load import parse_config
    >>> from streamer.core.durations import SECOND
    >>> from streamer.plan import make_plan
    >>> stream = ScriptedStream(make_plan(parse_config('''
    ...     buffer:
    ...       system_window: { timestamp_mapping: root = this.t, size: 10s }
    ...     pipeline:
    ...       processors:
    ...         - mapping: |
    ...             root.sum = if batch_index() == 0 { json("v").from_all().sum() }
    ...             root = if batch_index() > 0 { deleted() }
    ... ''')))
    >>> sent = [ScriptedMessage(Message.from_value({"t": t, "v": 1})) for t in (2, 5, 11)]
    >>> stream.run_micro_batch(2 * SECOND, sent).batches
    []
    >>> stream.run_micro_batch(10 * SECOND).batches[0][0].raw
    b'{"sum":2}'
    """

    def __init__(
        self,
        plan: Plan,
        log: LogLine = lambda level, text, fields: None,
        known: Iterable[ScriptedMessage] = (),
        max_shards: int = 1,
    ) -> None:
        """Make a stream that has never run.

        Args:
            plan: the stream's plan.
            log: takes log lines, as far as the plan's level lets them through.
            known: messages that will come: their partitions and inputs are known from the start,
                so that a clock that waits for them does.
            max_shards: how many shards of the plan's it has at most.
        """
        bare = replace(plan.input, processors=())
        self._plan = replace(plan, input=bare, shards=min(plan.shards, max_shards))
        self._task_plan = TaskPlan.of(self._plan)
        self._buffer_plans = [
            plan_of_buffer(self._plan, number) for number in range(len(plan.buffers))
        ] or [self._plan]
        self.stores = [DictStore() for _ in range(self._plan.shard_count)]
        self._delivery = Delivery(
            [], log, lambda: False, stream=DeliveredStream(endpoint_labels=EndpointLabels.of(plan))
        )
        self._clock_sources = self._list_clock_sources(known)
        self._starts = 0
        self._ended = False
        self._now = 0

    def _list_clock_sources(self, known: Iterable[ScriptedMessage]) -> dict[int, tuple[str, ...]]:
        pieces = [
            SourcePiece(_SOURCE, 0, [one], partition=_SOURCE.partition_of([one]), label=one.input)
            for one in known
        ]
        sources = {}
        for number, task_plan in split_task_plan(self._task_plan).items():
            window = task_plan.plan.window
            taken = [one for one in pieces if window is None or takes_label(window, one.label)]
            names = (name_clock_source(task_plan, piece) for piece in taken)
            sources[number] = tuple(dict.fromkeys(name for name in names if name))
        return sources

    @property
    def now(self) -> int:
        """The time of the newest micro-batch, which never runs backwards, Unix ns."""
        return self._now

    @property
    def snapshot(self) -> Snapshot:
        """The state of the stream after its newest micro-batch."""
        delivery = self._delivery
        return Snapshot.of(delivery.statuses.values(), delivery.metrics.counts, delivery.batch)

    @property
    def newest_end(self) -> int | None:
        """The last instant of the newest window of a grid that holds messages, ns, or None."""
        ends = [status.get("newest_end") for status in self._delivery.statuses.values()]
        return max((end for end in ends if end is not None), default=None)

    def processor_counts(self) -> Iterator[tuple[str, int, int]]:
        """Yield for each processor that has run its path, and the messages it got and gave."""
        counts = self._delivery.metrics.counts
        for (name, labels), received in sorted(counts.items()):
            if name == "processor_received":
                path = dict(labels).get("path", "")
                yield path, int(received), int(counts.get(("processor_sent", labels), 0))

    def restart(self) -> None:
        """Stop and start the program: the state stays, and a new input may follow."""
        self._starts += 1
        self._ended = False

    def run_micro_batch(
        self, batch_time: int, sent: Iterable[ScriptedMessage] = (), ended: bool = False
    ) -> BatchOutcome:
        """Run a micro-batch.

        Args:
            batch_time: its time, Unix ns.
            sent: its messages, in order of arrival.
            ended: the input ends with it, until there is a restart.

        Raises:
            RejectedError: a message must not be delivered, as `error_handling.strict` wants it.
        """
        before, self._now = self._now, max(self._now, batch_time)
        self._ended = self._ended or ended
        pieces = [list(group) for _, group in groupby(sent, lambda one: one[1:])]
        kept = [_capture_outputs(plan) for plan in self._buffer_plans]
        self._delivery.deliver(self._delivery.batch + 1, list(self._frames(pieces, kept, before)))
        results = [[batch for _, batch in stages[0].sorted_batches()] for stages in kept]
        late = [batch for stages in kept for one in stages[1:] for _, batch in one.sorted_batches()]
        buffers = self._plan.buffers
        return BatchOutcome(
            [
                batch
                for number, batches in enumerate(results)
                if not buffers or buffers[number].output is not None
                for batch in batches
            ],
            [message for batch in late for message in batch],
            {one.label: batches for one, batches in zip(buffers, results, strict=False)},
        )

    def _frames(
        self,
        pieces: list[list[ScriptedMessage]],
        kept: Sequence[Sequence[_CapturedOutput]],
        before: int,
    ) -> Iterator[Frame]:
        plan, task_plan = self._plan, self._task_plan
        if plan.window is None:
            stage = StatelessStage(task_plan, kept[0][0], lambda: self._now)
            for number, content in enumerate(pieces):
                yield from stage.frames(SourcePiece(_SOURCE, number, content))
            yield stage.status(self._ended, self._now)
            return
        # A jump of the clock is a blocked stream.
        pressure = BackPressure(((before, self._now),), 0, self._now - before)
        reading = MicroBatchInfo(
            *(self._now, str(self._starts)),
            ended=self._ended,
            pressure=pressure,
        )
        rows = list(make_clock_rows(plan, reading, self._clock_sources))
        pack_stage = PackStage(task_plan)
        for number, content in enumerate(pieces):
            piece = SourcePiece(
                _SOURCE,
                number,
                content,
                partition=_SOURCE.partition_of(content),
                label=content[0].input,
            )
            rows += pack_stage.rows(piece, self._now)
        shard_stages = ShardStages(task_plan, kept, lambda: self._now)
        for shard in self._shards_by_level():
            mine = [row for row in rows if row.shard == shard]
            for made in shard_stages.frames(shard, mine, self.stores[shard]):
                if isinstance(made, Frame):
                    yield made
                else:
                    rows.append(made)

    def _shards_by_level(self) -> list[int]:
        """Return the shards in the order in which rows go through them."""
        buffers, shards = self._plan.buffers, self._plan.shards
        if not buffers:
            return [*range(shards)]
        numbers = sorted(range(len(buffers)), key=lambda number: buffers[number].level)
        return [number * shards + shard for number in numbers for shard in range(shards)]


def _capture_outputs(plan: Plan) -> list[_CapturedOutput]:
    """Return what takes the place of a plan's outputs."""
    return [_CapturedOutput(plan, number, output) for number, output in enumerate(plan.outputs)]


class _CapturedOutput:
    """An output with its processors whose batches are kept instead of written."""

    def __init__(self, plan: Plan, number: int, component: ParsedComponent) -> None:
        self._processors: list[Processor] = plan.context(component).build_all(component.processors)
        self._component = component
        self._captured: list[tuple[int, Batch]] = []

    def finish(self) -> None:
        """Nothing is left to do."""

    def payloads(self, batches: Iterable[Batch], order: int, ex: Execution) -> Iterator[Payload]:
        """Keep what comes out of the processors; nothing is left to be written."""
        batches = run(self._processors, batches, ex)
        for batch in reject_failed(batches, self._component, ex) if ex.strict else batches:
            self._captured.append((order, batch))
        yield from ()

    def sorted_batches(self) -> list[tuple[int, Batch]]:
        """Return the batches as the driver would have them written, each with its place."""
        return sorted(self._captured, key=lambda taken: taken[0])


class _MessageSource:
    """A source whose pieces are messages, each a batch of its own as from a line-based input.

    Attributes:
        has_partitions: a clock may wait for each of its partitions.
    """

    has_partitions: ClassVar = True

    def read(self, piece: list[ScriptedMessage], ex: Execution) -> Iterator[Chunk]:
        """Give the messages."""
        yield [[sent.message] for sent in piece]

    def partition_of(self, piece: list[ScriptedMessage]) -> str:
        """Name the partition, which is the same for all messages of a piece."""
        _, partition, label = piece[0]
        return f"{label}:{partition}" if label else str(partition)


_SOURCE = _MessageSource()
