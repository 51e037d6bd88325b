"""Timeline of a buffer that takes the results of another: its messages are these results.

The buffers before it run with their pipelines. When a result comes, and how early one may still
come, decides when windows behind it close, so that all of them run as one stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.timestamps import parse_event_time
from streamer.engine.offline.arrival_clock import ArrivalClock, ArrivalTimes
from streamer.engine.offline.scripted import BatchOutcome
from streamer.engine.offline.window_simulator import (
    EventTimeReader,
    find_buffer,
    truncate_after_buffer,
)
from streamer.engine.stage.result_rows import WindowTimeMapping
from streamer.plan import Plan
from streamer.plan.buffer_chain import find_readers, plan_of_buffer
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.tools.timeline.model import Event, Timeline
from streamer.tools.timeline.simulate import Simulation, run_simulation, simulate
from streamer.window.pack.window_metadata import WINDOW_EMIT, WINDOW_KEY
from streamer.window.settings.result_times import shift_of_results

_MARK_METADATA: Final = "streamer_timeline_result"
_MARK_PROCESSOR: Final = ParsedComponent(
    Kind.PROCESSOR, "mutation", config=f"meta {_MARK_METADATA} = uuid_v4()"
)


def simulate_buffer(
    plan: Plan,
    label: str,
    sample: Sequence[Batch],
    arrivals: ArrivalTimes,
    now: Callable[[], int],
) -> Timeline:
    """Run a sample through one of several buffers, or through the only one; see `simulate`.

    Args:
        plan: the stream's plan.
        label: the buffer's; empty for the first one behind the input.
        sample: batches as the input gives them.
        arrivals: when they arrive.
        now: the clock of the first message, when nothing else tells it.

    Raises:
        StreamerError: there is no such buffer, or it cannot be shown.
    """
    number = find_buffer(plan, label)
    if number is None:
        return simulate(plan, sample, arrivals, now)
    one = plan.buffers[number]
    if not one.sources:
        return simulate(plan_of_buffer(plan, number), sample, arrivals, now)
    if one.windows.window is not None and one.windows.window.join is not None:
        raise StreamerError(
            f"{label} joins results of {plan.buffers[one.sources[0]].label}, and a timeline shows "
            "joins of inputs only; write a test with `target: stream` instead"
        )
    return run_simulation(_ResultSimulation(plan, number, arrivals, now), plan, sample)


class _ResultSimulation(Simulation):
    def __init__(
        self, plan: Plan, number: int, arrivals: ArrivalTimes, now: Callable[[], int]
    ) -> None:
        one, own = plan.buffers[number], plan_of_buffer(plan, number)
        (source,) = one.sources
        marked = truncate_after_buffer(plan, number, (_MARK_PROCESSOR,))
        super().__init__(own, arrivals, now, marked)
        first = find_readers(plan, None)[0]
        self._times = EventTimeReader(plan_of_buffer(plan, first))
        self._arrival_clock = ArrivalClock(self._times, arrivals, now)
        before = plan.buffers[source].windows.window
        assert before is not None
        self._result_times = EventTimeReader(own) if one.has_own_times else None
        self._window_times = WindowTimeMapping(shift_of_results(before))
        self._source, self._label = plan.buffers[source].label, one.label
        self._results: dict[str, Event] = {}

    def add_batch(self, batch: Batch) -> None:
        clock, processed = self._process_batch(batch)
        for message in processed:
            self._simulator.send(clock, message)

    def _record_outcome(self, outcome: BatchOutcome, now: int) -> None:
        for batch in outcome.by_buffer[self._source]:
            for message in batch:
                event = self._add_event(message, now)
                event.time = self._read_time(message, now)
                self._results[str(message.meta[_MARK_METADATA])] = event
        batches = [self._remove_source_metadata(one) for one in outcome.by_buffer[self._label]]
        super()._record_outcome(BatchOutcome(batches, outcome.dropped), now)

    def _read_time(self, message: Message, now: int) -> int | None:
        if self._result_times is not None:
            return self._result_times.read(message, now)
        try:
            return parse_event_time(self._window_times.query([message], 0, Execution(lambda: now)))
        except ValueError:
            return None

    def _remove_source_metadata(self, batch: Batch) -> Batch:
        """Return the batch of a window without the metadata that the window before has added."""
        gone = set()
        if not self._window.keyed:
            gone.add(WINDOW_KEY)
        if self._window.implicit_size is not None:
            gone.add(WINDOW_EMIT)
        first = batch[0]
        kept = {name: value for name, value in first.meta.items() if name not in gone}
        return [first.with_metadata(kept), *batch[1:]]

    def _find_event(self, message: Message) -> Event:
        return self._results[str(message.meta[_MARK_METADATA])]
