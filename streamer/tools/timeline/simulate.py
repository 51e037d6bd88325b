"""Run sample messages through the real window kernel, and note what becomes of each.

The kernel gets the messages one micro-batch at a time and is called whenever a window is due, as
Spark calls it. The pipeline is left out, since it sees a window when all is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.timestamps import format_rfc3339
from streamer.engine.offline.arrival_clock import ArrivalClock, ArrivalTimes
from streamer.engine.offline.scripted import BatchOutcome
from streamer.engine.offline.window_simulator import (
    EventTimeReader,
    WindowSimulator,
    truncate_after_windows,
)
from streamer.plan import Plan
from streamer.sdk.lookup_table import use_local_tables
from streamer.sdk.processing import run
from streamer.tools.timeline.model import Emission, Event, Timeline
from streamer.tools.timeline.windows import WindowIndex
from streamer.window.assign.pack_builder import DROP_REASON
from streamer.window.pack.window_metadata import WINDOW_EMIT

_NUMBER_METADATA = "streamer_timeline_number"
_DROP_TEXTS = {
    "timestamp": "its timestamp_mapping gave no time",
    "expired": "its window was overdue and dropped",
    "key": "its key_mapping gave no key",
    "gap": "its gap_mapping gave no gap",
    "future": "its time is further ahead of the clock than max_ahead allows",
    "incomplete": "it came before the first window, or the input ended before its window was full",
}


def simulate(
    plan: Plan, sample: Sequence[Batch], arrivals: ArrivalTimes, now: Callable[[], int]
) -> Timeline:
    """Run a sample.

    Args:
        plan: the stream's plan; its input's processors are run.
        sample: batches as the input gives them.
        arrivals: when they arrive.
        now: the clock of the first message, when nothing else tells it.

    Raises:
        StreamerError: the plan has no windows, or a message has no time of arrival.
    """
    if plan.window is None:
        raise StreamerError(
            f"a timeline shows windows, and the buffer of {plan.name} is {plan.buffer.name}; "
            "use one that makes windows, such as `buffer: {system_window: {size: …}}`"
        )
    return run_simulation(Simulation(plan, arrivals, now), plan, sample)


def run_simulation(simulation: Simulation, plan: Plan, sample: Sequence[Batch]) -> Timeline:
    """Run a sample through a simulation of a plan."""
    with use_local_tables(plan.resources, plan.context()):
        for batch in sample:
            simulation.add_batch(batch)
        return simulation.end()


class Simulation:
    """A run of sample messages through windows."""

    def __init__(
        self,
        plan: Plan,
        arrivals: ArrivalTimes,
        now: Callable[[], int],
        simulated: Plan | None = None,
    ) -> None:
        """Begin.

        Args:
            plan: of the windows that are shown.
            arrivals: when messages arrive.
            now: the clock of the first message, when nothing else tells it.
            simulated: the plan that is run; the first one up to its windows when None.
        """
        assert plan.window is not None
        run_plan = truncate_after_windows(plan) if simulated is None else simulated
        self._simulator = WindowSimulator(run_plan, self._record_outcome)
        self._name, self._window = plan.name, plan.window
        self._times = EventTimeReader(plan)
        self._arrival_clock = ArrivalClock(self._times, arrivals, now)
        self._now = now
        self._is_over = False
        self._processors = plan.context().build_all(plan.input.processors)
        self._events: list[Event] = []
        self._spans = WindowIndex(plan.window)
        self._emissions: list[Emission] = []
        self._placed: set[tuple[int, int]] = set()

    def _process_batch(self, batch: Batch) -> tuple[int, Batch]:
        """Return when a batch arrives, and what the input's processors make of it."""
        clock = self._arrival_clock.advance(batch, len(self._events) + 1)
        ex = Execution(lambda: clock)
        return clock, [m for b in run(self._processors, [batch], ex) for m in b]

    def add_batch(self, batch: Batch) -> None:
        """Let a batch arrive: all at the time of its first message."""
        clock, processed = self._process_batch(batch)
        if not processed:
            for message in batch:
                event = self._add_event(message, clock)
                event.dropped, event.why = "input.processors", "left out by input.processors"
        for message in processed:
            event = self._add_event(message, clock)
            time = self._times.read_or_explain(message, clock)
            event.time = None if isinstance(time, str) else time
            event.why = time if isinstance(time, str) else ""
            self._simulator.send(
                clock, message.with_added_metadata(**{_NUMBER_METADATA: event.number})
            )

    def end(self) -> Timeline:
        """End the input, and go on until no window is held back by the clock."""
        clock = self._arrival_clock.now
        clock = self._now() if clock is None else clock
        ended = self._simulator.end(clock, wait=self._window.end_of_input == "wait")
        # What is held then goes on to the next start, which shows what it is.
        self._is_over = True
        self._simulator.restart()
        return Timeline(
            self._name,
            self._window,
            self._events,
            self._spans.list_windows(),
            self._emissions,
            ended,
        )

    def _add_event(self, message: Message, clock: int) -> Event:
        text = message.raw.decode(errors="replace")
        event = Event(len(self._events) + 1, text, clock)
        self._events.append(event)
        return event

    def _record_outcome(self, outcome: BatchOutcome, now: int) -> None:
        for batch in outcome.batches:
            self._record_batch(batch, now)
        for message in outcome.dropped:
            event = self._find_event(message)
            event.dropped = str(message.meta[DROP_REASON])
            event.why = self._explain_drop(event)

    def _find_event(self, message: Message) -> Event:
        number: int = message.meta[_NUMBER_METADATA]
        return self._events[number - 1]

    def _record_batch(self, batch: Batch, now: int) -> None:
        # What stands in for the messages of a window without any is none of them.
        is_empty = batch[0].meta.get(WINDOW_EMIT) in ("empty", "retracted")
        events = [] if is_empty else [self._find_event(message) for message in batch]
        emission = self._spans.record_emission(
            batch[0].meta, [event.number for event in events], now
        )
        if emission is None:
            for event, message in zip(events, batch, strict=True):
                # Without windows, messages have nothing of theirs though they have not failed.
                event.failed = "" if message.error is None else str(message.error)
            return
        span = emission.span
        for event in events:
            if (event.number, id(span)) not in self._placed:
                self._placed.add((event.number, id(span)))
                (event.waiting if self._is_over else event.windows).append(span)
        if self._is_over:
            span.closed = None
        else:
            self._emissions.append(emission)

    def _explain_drop(self, event: Event) -> str:
        if event.dropped == "timestamp" and event.why:
            return f"{_DROP_TEXTS['timestamp']}: {event.why}"
        if event.dropped != "late":
            return _DROP_TEXTS.get(event.dropped, "its buffer dropped it")
        if event.time is None or self._window.implicit_size is None:
            return "its last window had closed"
        last = self._window.grid.last_end(event.time)
        due = self._window.due_time(last)
        if due <= event.arrived:
            return f"its last window closed at {format_rfc3339(due)}"
        return "its windows ended before the stream began"
