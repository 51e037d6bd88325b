"""Takes the batches that windows emit through the processors to the outputs, each by its route.

Batches of one route that follow one another go together, as far as nobody can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from itertools import groupby
from typing import TYPE_CHECKING, Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.report.capture_request import CAPTURES_RESULTS
from streamer.engine.report.emission_stats import EmissionStats
from streamer.engine.report.result_frame import Payload
from streamer.engine.stage.aggregated_pipeline import AggregatedPipeline
from streamer.engine.stage.output_stage import OutputStage, Stage
from streamer.engine.stage.window_strategies import (
    FIRST_ORDER,
    AggregatedWindows,
    ApplyMapping,
    DroppedRoute,
    EmissionProcessing,
    EmptyWindows,
    GroupsPastCrashes,
    MappedGroups,
    PastCrashes,
    PlainBatchRoute,
    PlainRoute,
    ProcessedRoute,
    RouteStrategy,
    SingleProcessing,
    SingleRoute,
    SplitBatchRoute,
    WholeWindows,
    groups_of,
    order_of,
)
from streamer.plan import Plan
from streamer.plan.component_lookup import is_sent_by_workers
from streamer.sdk.processing import Processor
from streamer.window import Emission
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.contract import EmptyWindow
from streamer.window.fire.emission_batch import EmissionBatch

if TYPE_CHECKING:
    from streamer.engine.stage.keyed_routes import EmissionKeys
    from streamer.engine.stage.result_capture import ResultCapture


class Route(Enum):
    """The way of an emission out of stage 2."""

    DROPPED = auto()
    """To `late_output` alone."""

    SINGLE = auto()
    """Messages of which each is a batch by itself."""

    AGGREGATED = auto()
    """A group, which goes through the mapping that it was aggregated for."""

    AGGREGATED_BATCH = auto()
    """Many groups in one emission."""

    WHOLE = auto()
    """A batch of messages."""

    GROUPED = auto()
    """A batch of messages that the shard has grouped as the first processor would."""

    EMPTY = auto()
    """A window without messages."""


RouteKey = tuple[Route, int, str]
"""Route, order, and the mapping of groups: emissions alike in these go together."""

# There is a key for each emission, and to look up a member of an enumeration takes 50 ns.
_SINGLE_KEY: Final = (Route.SINGLE, FIRST_ORDER, "")
_BATCH_KEY: Final = (Route.AGGREGATED_BATCH, FIRST_ORDER, "")
_AGGREGATED, _WHOLE, _GROUPED = Route.AGGREGATED, Route.WHOLE, Route.GROUPED


class WindowPipeline:
    """Takes the batches that one shard emits in a micro-batch."""

    def __init__(
        self,
        plan: Plan,
        processors: Sequence[Processor],
        stages: Sequence[Stage],
        ex: Execution,
        keys: EmissionKeys | None = None,
    ) -> None:
        """Choose a strategy for each route.

        Args:
            plan: the stream's plan.
            processors: those of its pipeline, built.
            stages: its outputs, built, by their numbers.
            ex: the run in which all is counted.
            keys: takes the state by key from batch to batch; None where none is kept.
        """
        self._plan = plan
        self._keys = keys
        self._reads_documents = plan.keyed_state.reads_documents
        self._processors = processors
        self._stages = stages
        self._ex = ex
        self._stats = EmissionStats(plan, ex)
        self._aggregated = AggregatedPipeline(plan, processors, ex)
        self._has_grouping_key = plan.key is not None and plan.key.replaces_grouping
        self._capture: ResultCapture | None = None
        if plan.retention is not None or CAPTURES_RESULTS.get():
            # Imported here: most streams keep no results.
            from streamer.engine.stage.result_capture import ResultCapture

            self._capture = ResultCapture(plan)
        self._plain_output = self._find_plain_output()
        # Windows of which nothing is sorted on the driver go to the output together, whichever
        # their ends are: it may put them into one request.
        is_sent = is_sent_by_workers(plan.output, plan.resources)
        self._order_of = _first_order if is_sent else order_of
        self._strategies = self._make_strategies()

    def payloads(self, emissions: Iterable[Emission]) -> Iterator[Payload]:
        """Run batches through the processors and the outputs."""
        payloads = self._run_emissions(emissions)
        if self._ex.crashes is not None:
            payloads = self._ex.crashes.raise_at_end(payloads)
        return payloads if self._capture is None else self._capture.add_results(payloads)

    def _run_emissions(self, emissions: Iterable[Emission]) -> Iterator[Payload]:
        for (route, order, _), same in groupby(emissions, key=self._key_of):
            yield from self._strategies[route].run(same, order)

    def _key_of(self, emission: Emission) -> RouteKey:
        if isinstance(emission, EmissionBatch):
            return _BATCH_KEY
        batch = emission.messages
        if emission.is_per_message or (
            emission.reason == "event" and len(batch) == 1 and self._capture is None
        ):
            return _SINGLE_KEY
        if isinstance(batch, AggregatedGroup):
            order = FIRST_ORDER if self._plain_output else self._order_of(emission)
            return _AGGREGATED, order, batch.text
        if isinstance(batch, EmptyWindow):
            return Route.EMPTY, order_of(emission), ""
        if emission.reason == "dropped":
            return Route.DROPPED, order_of(emission), ""
        # Of what the shard has grouped as the first processor would, only messages whose key
        # failed, which have the empty key, are still to be looked at by it.
        is_grouped = self._has_grouping_key and emission.key
        return _GROUPED if is_grouped else _WHOLE, self._order_of(emission), ""

    def _find_plain_output(self) -> OutputStage | None:
        """Return the output if groups are written as the mapping makes them, one by one."""
        output = self._stages[0]
        if self._ex.crashes is None and self._aggregated.ends_with_mapping:
            return output if isinstance(output, OutputStage) and output.is_plain else None
        return None

    def _make_strategies(self) -> dict[Route, RouteStrategy]:
        ex, stats, aggregated, plain = self._ex, self._stats, self._aggregated, self._plain_output
        strategies: dict[Route, RouteStrategy] = {
            route: ProcessedRoute(processing, self._stages[0], stats, ex)
            for route, processing in self._make_processing().items()
        }
        strategies[Route.AGGREGATED_BATCH] = SplitBatchRoute(self._run_emissions)
        if ex.crashes is None and not self._captures_messages:
            strategies[Route.SINGLE] = self._make_single_route()
        if len(self._stages) > 1:
            strategies[Route.DROPPED] = DroppedRoute(self._stages[1], ex)
        if plain is not None:
            strategies[Route.AGGREGATED] = PlainRoute(self._make_mapping(), plain, stats, ex)
            if self._capture is None:  # which takes each group by itself
                strategies[Route.AGGREGATED_BATCH] = PlainBatchRoute(aggregated, plain, stats, ex)
        return strategies

    def _make_single_route(self) -> RouteStrategy:
        output = self._stages[0]
        if self._keys is not None:
            # Imported here: most streams keep no state by key.
            from streamer.engine.stage.keyed_routes import StatefulSingleRoute

            return StatefulSingleRoute(
                *(self._processors, output, self._keys, self._stats, self._ex),
                self._reads_documents,
            )
        return SingleRoute(self._processors, output, self._stats, self._ex)

    def _make_processing(self) -> dict[Route, EmissionProcessing]:
        ex, aggregated, processors = self._ex, self._aggregated, self._processors
        empty = EmptyWindows(self._plan, processors, ex)
        if ex.crashes is not None:
            mark = self._mark_keys if self._keys is not None else None
            groups = GroupsPastCrashes(aggregated, ex, mark)
            whole = PastCrashes(processors, ex, mark_keys=mark)
            grouped = PastCrashes(processors[1:], ex, mark_keys=mark)
            return {
                Route.EMPTY: self._wrap_processing(self._with_keys(empty)),
                Route.SINGLE: PastCrashes(processors, ex, splits_messages=True, mark_keys=mark),
                Route.AGGREGATED: self._wrap_processing(groups),
                Route.WHOLE: self._wrap_processing(whole),
                Route.GROUPED: self._wrap_processing(grouped),
            }
        processing: dict[Route, EmissionProcessing] = {}
        if self._capture is not None and self._captures_messages:
            processing[Route.SINGLE] = self._capture.wrap_messages(WholeWindows(processors, ex))
        return processing | {
            Route.EMPTY: self._wrap_processing(self._with_keys(empty)),
            Route.AGGREGATED: MappedGroups(self._make_mapping())
            if aggregated.ends_with_mapping
            else self._wrap_processing(self._with_keys(AggregatedWindows(aggregated))),
            Route.WHOLE: self._wrap_processing(self._with_keys(WholeWindows(processors, ex))),
            Route.GROUPED: self._wrap_processing(self._with_keys(WholeWindows(processors[1:], ex))),
        }

    @property
    def _captures_messages(self) -> bool:
        """Whether the results of each message that is a batch by itself are noted."""
        capture = self._capture
        return capture is not None and capture.takes_unbounded and self._keys is None

    def _with_keys(self, processing: SingleProcessing) -> SingleProcessing:
        if self._keys is None:
            return processing
        from streamer.engine.stage.keyed_routes import StatefulProcessing

        return StatefulProcessing(processing, self._keys)

    def _mark_keys(self, emissions: Sequence[Emission], batches: Sequence[Batch]) -> Processor:
        from streamer.engine.stage.keyed_routes import KeyMarker

        assert self._keys is not None
        return KeyMarker(self._keys, emissions, batches)

    def _wrap_processing(self, processing: SingleProcessing) -> EmissionProcessing:
        return processing if self._capture is None else self._capture.wrap_processing(processing)

    def _make_mapping(self) -> ApplyMapping:
        def apply(emissions: Sequence[Emission]) -> list[Message | None]:
            return self._aggregated.apply_mapping(groups_of(emissions))

        return apply if self._capture is None else self._capture.wrap_mapping(apply)


def _first_order(emission: Emission) -> int:
    return FIRST_ORDER
