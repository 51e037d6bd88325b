"""The input of a task: what the plan says of a piece, and the way of its messages to the buffer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamer.components.catalog import build_input_policy
from streamer.connectors.merged_source import source_path_of
from streamer.core.execution import Execution
from streamer.core.json.bulk import serialise_batch
from streamer.core.message import Batch, Message
from streamer.engine.report.component_errors import attribute_iteration_errors
from streamer.engine.report.rejected_messages import PIPELINE_PATH, InputPath, ReplayRules
from streamer.engine.report.result_frame import DEFAULT_REPLAY_RULES, TaskReport
from streamer.engine.report.spans import TaskTrace
from streamer.plan import Plan
from streamer.plan.buffer_chain import plan_of_buffer
from streamer.plan.component_lookup import inner_inputs, input_of_path, input_paths
from streamer.plan.rejection import rejects, replays
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.batch_chunks import batch_chunks
from streamer.sdk.input.replayable import Chunk, RawMessages, ReadableSource
from streamer.sdk.processing import Processor, run, run_each
from streamer.sdk.processing.batching import BatchPolicy
from streamer.sdk.spec import BuildContext, ParsedComponent
from streamer.window.contract import PIECE_BITS

if TYPE_CHECKING:
    from streamer.core.json.columns.column_reader import ColumnMode

# So few that their documents are still in the processor's cache when they are written out again:
# a quarter less time than with thousands. Enough to search them together (documents.py).
_MESSAGES_PER_RUN: Final = 64


class SourcePiece(NamedTuple):
    """A piece of a micro-batch's input, and where it stands.

    Attributes:
        source: reads it.
        number: its place among the pieces of the micro-batch, from 0.
        content: what the source made in `split`.
        arrival: the number of its first message's arrival; None to number by the piece.
        partition: names the source's partition that it is from.
        label: of the input that it is from, where `content` does not know it.
    """

    source: ReadableSource
    number: int
    content: Any
    arrival: int | None = None
    partition: str = ""
    label: str = ""

    @property
    def first_arrival(self) -> int:
        """The number of the first message's arrival."""
        return self.number << PIECE_BITS if self.arrival is None else self.arrival


@dataclass(frozen=True, slots=True)
class PieceInput:
    """The input that some pieces are from.

    Attributes:
        path: the numbers of the sources that they are from, the outermost first.
        component: the input, with the processors of all inputs that it is in.
        inner: labels and paths of the inputs inside of the plan's that messages come through.
        replays: whether it gives a rejected message again.
    """

    path: InputPath
    component: ParsedComponent
    inner: tuple[Mapping[str, str], ...]
    replays: bool

    @classmethod
    def of(cls, plan: Plan, path: InputPath) -> PieceInput:
        """Resolve the input at a path of a plan's."""
        component = input_of_path(plan.input, path, plan.resources)
        inner = inner_inputs(plan.input, path, plan.resources)
        fields = tuple(ComponentRef(one).fields for one in inner)
        return cls(path, component, fields, replays(component, plan.resources))


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A plan, and what follows from it for its tasks.

    Attributes:
        plan: the plan.
        inputs: the inputs that pieces may be from, by path.
        packed_aggregation: the mapping that stage 1 aggregates for; None where it packs messages.
        tracks_origins: whether rejected messages go through the processors again, so that it must
            be known of each what the input gave. Other streams are spared of that.
        aggregation_identity: of the mappings that the windows of the stream pre-aggregate for.
        column_mode: when the fields that windows need are read as columns.
    """

    plan: Plan
    inputs: Mapping[InputPath, PieceInput]
    packed_aggregation: str | None
    tracks_origins: bool
    aggregation_identity: str = ""
    column_mode: ColumnMode = "auto"

    @classmethod
    def of(cls, plan: Plan) -> TaskPlan:
        """Decide for a plan."""
        window = plan.window
        packs_groups = window is not None and window.strategy == "panes"
        paths = input_paths(plan.input, plan.resources)
        return cls(
            plan,
            {path: PieceInput.of(plan, path) for path in paths},
            plan.aggregation.text if packs_groups else None,
            rejects(plan),
            plan.aggregation_identity,
            _column_mode(os.environ.get("STREAMER_COLUMNS", "")),
        )

    def of_buffer(self, number: int) -> TaskPlan:
        """Return the same for one of several buffers, as if there were no other."""
        plan = plan_of_buffer(self.plan, number)
        one = TaskPlan.of(plan)
        return replace(one, inputs=self.inputs, aggregation_identity=self.aggregation_identity)

    def input_of(self, piece: SourcePiece) -> PieceInput:
        """Return the input that a piece is from."""
        return self.input_at(source_path_of(piece.content))

    def input_at(self, path: InputPath) -> PieceInput:
        """Return the input that a source is of, by the numbers of the sources down to it."""
        while path not in self.inputs:
            path = path[:-1]  # sources inside of an input that is no broker
        return self.inputs[path]

    def replay_rules(self, piece: SourcePiece | None = None) -> ReplayRules:
        """Return how messages are given again when they are rejected; those of all pieces or one's.

        Of what has gone through a window or a buffer, it is not known which input it is from.
        """
        if piece is None:
            return ReplayRules(self.inputs[()].replays)
        is_direct = self.plan.buffer.name == "none"
        path = source_path_of(piece.content) if is_direct else PIPELINE_PATH
        return ReplayRules(self.input_of(piece).replays, path)

    def begin_report(
        self,
        component: ParsedComponent,
        now: Callable[[], int] = time.time_ns,
        replay_rules: ReplayRules = DEFAULT_REPLAY_RULES,
    ) -> TaskReport:
        """Begin the report of a task that begins with a component: the input or the buffer."""
        tracing = None
        if self.plan.traced:
            tracing = TaskTrace(
                component.kind.value, ComponentRef(component).fields, time.time_ns()
            )
        report = TaskReport.of(self.plan, now, tracing, replay_rules)
        report.owner = ComponentRef(component).fields["path"]
        return report


def _column_mode(text: str) -> ColumnMode:
    """Return the mode that tests choose by the environment variable `STREAMER_COLUMNS`."""
    return text if text in ("always", "never") else "auto"  # type: ignore[return-value]


class OpenedPiece(NamedTuple):
    """A piece that a task reads.

    Attributes:
        label: of the input that it is from.
        processors: what its messages go through before the buffer.
        chunks: what it gives.
    """

    label: str
    processors: list[Processor]
    chunks: Iterator[Chunk]


class PieceReader:
    """Reads the pieces of a task, with the processors of each input built once."""

    def __init__(self, task_plan: TaskPlan, context: BuildContext) -> None:
        """Take the plan, and what builds components."""
        self._task_plan = task_plan
        self._context = context
        self._built: dict[InputPath, tuple[list[Processor], BatchPolicy | None]] = {}

    def open_piece(self, piece: SourcePiece, task: TaskReport) -> OpenedPiece:
        """Open a piece; reading it is reported to a task."""
        piece_input = self._task_plan.input_of(piece)
        built = self._built.get(piece_input.path)
        if built is None:
            built = self._built[piece_input.path] = self._build(piece_input.component)
        processors, policy = built
        chunks = piece.source.read(piece.content, task.execution)
        if policy is not None:
            chunks = batch_chunks(chunks, policy, task.execution)
        observed = observe_input(chunks, self._task_plan.plan.input, task, piece_input.inner)
        return OpenedPiece(piece.label or piece_input.component.label, processors, observed)

    def _build(self, component: ParsedComponent) -> tuple[list[Processor], BatchPolicy | None]:
        policy = build_input_policy(component, self._task_plan.plan.context(component))
        return self._context.build_all(component.processors), policy


def run_chunk(
    processors: Sequence[Processor], chunk: Chunk, ex: Execution, *, written: bool = False
) -> Iterator[Batch]:
    """Return the batches that come out; each plain payload goes in as a batch of its own.

    Args:
        processors: what they go through.
        chunk: what goes in.
        ex: the run.
        written: whether the payloads are about to be used as bytes: then they are written together.
    """
    if ex.crashes is not None:
        yield from _run_past_crashes(processors, chunk, ex, written)
        return
    yield from _run_messages(processors, chunk, ex, written)


def _run_past_crashes(
    processors: Sequence[Processor], chunk: Chunk, ex: Execution, written: bool
) -> Iterator[Batch]:
    """Do what `run_chunk` does where a worker has died."""
    if isinstance(chunk, RawMessages):
        raws, meta = chunk.raws, chunk.meta
        batches = [[Message(raw, meta)] for raw in raws]

        def part(begin: int, end: int) -> Chunk:
            return RawMessages(raws[begin:end], meta)
    else:
        batches = whole = chunk

        def part(begin: int, end: int) -> Chunk:
            return whole[begin:end]

    yield from ex.crashes.run_batches(
        processors,
        batches,
        ex,
        "",
        lambda begin, end: _run_messages(processors, part(begin, end), ex, written),
    )


def _run_messages(
    processors: Sequence[Processor], chunk: Chunk, ex: Execution, written: bool
) -> Iterator[Batch]:
    if not isinstance(chunk, RawMessages) and any(len(batch) != 1 for batch in chunk):
        yield from run(processors, chunk, ex)
        if ex.read_counter is not None:
            ex.read_counter.add(count_messages(chunk))
        return
    for start in range(
        0, len(chunk.raws if isinstance(chunk, RawMessages) else chunk), _MESSAGES_PER_RUN
    ):
        messages = _make_messages(chunk, start)
        count = len(messages)
        batches = run_each(processors, messages, ex)
        if written:
            serialise_batch([message for batch in batches for message in batch])
        yield from batches
        if ex.read_counter is not None:
            ex.read_counter.add(count)


def observe_input(
    chunks: Iterable[Chunk],
    component: ParsedComponent,
    task: TaskReport,
    inner: Iterable[Mapping[str, str]] = (),
) -> Iterator[Chunk]:
    """Return what an input gives; an exception while it is read is the input's error.

    Args:
        chunks: what it gives.
        component: the input.
        task: its trace gets what is read, and its run the samples where somebody watches.
        inner: labels and paths of the inputs inside of it that they come through, which count them.
    """
    ex = task.execution
    observed = _sample_and_count(chunks, component, ex, inner)
    observed = attribute_iteration_errors(observed, ComponentRef(component).fields)
    if task.tracing is not None:
        observed = task.tracing.follow(observed)
    return observed if ex.crashes is None else ex.crashes.raise_at_end(observed)


def _sample_and_count(
    chunks: Iterable[Chunk],
    component: ParsedComponent,
    ex: Execution,
    inner: Iterable[Mapping[str, str]],
) -> Iterator[Chunk]:
    sampler = ex.sampler
    key = ComponentRef(component).key
    for chunk in chunks:
        if sampler is not None:
            some = (
                [[one] for one in _make_messages(chunk, 0)]
                if isinstance(chunk, RawMessages)
                else chunk
            )
            for batch in some:
                sampler.sample(batch, key, "after")
        for labels in inner:
            ex.count("input_received", count_messages(chunk), **labels)
        yield chunk


def count_messages(chunk: Chunk) -> int:
    """Return how many messages a chunk has."""
    return len(chunk) if isinstance(chunk, RawMessages) else sum(map(len, chunk))


def _make_messages(chunk: Chunk, start: int) -> list[Message]:
    """Return a piece of the messages, each of which is a batch by itself."""
    if isinstance(chunk, RawMessages):
        return [Message(raw, chunk.meta) for raw in chunk.raws[start : start + _MESSAGES_PER_RUN]]
    return [message for [message] in chunk[start : start + _MESSAGES_PER_RUN]]
