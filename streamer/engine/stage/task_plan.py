"""Facts of a plan that tasks need: decided once by the driver, and pickled to all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamer.connectors.merged_source import source_path_of
from streamer.engine.report.rejected_messages import PIPELINE_PATH, InputPath, ReplayRules
from streamer.engine.report.result_frame import DEFAULT_REPLAY_RULES, TaskReport
from streamer.engine.report.spans import TaskTrace
from streamer.plan import Plan
from streamer.plan.component_lookup import inner_inputs, input_of_path, input_paths
from streamer.plan.rejection import rejects, replays
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.replayable import ReadableSource
from streamer.sdk.processing import Processor
from streamer.sdk.spec import BuildContext, ParsedComponent
from streamer.window.contract import PIECE_BITS


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
    """

    plan: Plan
    inputs: Mapping[InputPath, PieceInput]
    packed_aggregation: str | None
    tracks_origins: bool

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
        )

    def input_of(self, piece: SourcePiece) -> PieceInput:
        """Return the input that a piece is from."""
        path = source_path_of(piece.content)
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
        return TaskReport.of(self.plan, now, tracing, replay_rules)


class InputProcessors:
    """Builds the processors of each input once for a task."""

    def __init__(self, context: BuildContext) -> None:
        """Take what builds components."""
        self._context = context
        self._built: dict[InputPath, list[Processor]] = {}

    def of(self, piece_input: PieceInput) -> list[Processor]:
        """Return the processors that messages of an input go through before the buffer."""
        processors = self._built.get(piece_input.path)
        if processors is None:
            processors = self._context.build_all(piece_input.component.processors)
            self._built[piece_input.path] = processors
        return processors
