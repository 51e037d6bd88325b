"""Run sample messages through the real window kernel, and note what becomes of each.

The kernel gets the messages one micro-batch at a time and is called whenever a window is due, as
Spark calls it. The pipeline is left out, since it sees a window when all is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamer.bloblang import BloblangError, Mapping, compile_mapping
from streamer.engine.play import EventTime, Player, windows_only
from streamer.engine.scripted import Outcome
from streamer.errors import MessageError, StreamerError
from streamer.message import Batch, Execution, Message
from streamer.pipeline import run
from streamer.plan import Plan
from streamer.timeline.model import Emission, Event, Timeline
from streamer.timeline.spans import Spans
from streamer.timestamps import format_rfc3339, parse_event_time
from streamer.window import SystemWindow
from streamer.window.drops import REASON
from streamer.window.words import AnyWindow

_NUMBER = "streamer_timeline_number"
_WHY = {
    "timestamp": "its timestamp_mapping gave no time",
    "expired": "its window was overdue and dropped",
    "key": "its key_mapping gave no key",
    "future": "its time is further ahead of the clock than max_ahead allows",
    "incomplete": "it came before the first window, or the input ended before its window was full",
}


@dataclass(frozen=True)
class Arrivals:
    """When messages arrive.

    Attributes:
        clock: the time of the first message, ns; None for its event time.
        step: ns from one message to the next; None for the event times, or the message before
            where that is later.
        mapping: a mapping that gives a message's time of arrival; wins over both.
    """

    clock: int | None = None
    step: int | None = None
    mapping: str = ""


def record(
    plan: Plan, sample: Sequence[Batch], arrivals: Arrivals, now: Callable[[], int]
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
    recorder = _Recorder(plan, plan.window, arrivals, now)
    for batch in sample:
        recorder.take(batch)
    return recorder.end()


class _Recorder:
    def __init__(
        self, plan: Plan, window: AnyWindow, arrivals: Arrivals, now: Callable[[], int]
    ) -> None:
        self._player = Player(windows_only(plan), self._note)
        self._name, self._window = plan.name, window
        self._times = EventTime(plan)
        self._arrivals = arrivals
        self._arrival = _compiled(arrivals.mapping)
        self._now = now
        self._clock: int | None = None
        self._is_over = False
        self._processors = plan.context().all(plan.input.processors)
        self._events: list[Event] = []
        self._spans = Spans(window)
        self._emissions: list[Emission] = []
        self._placed: set[tuple[int, int]] = set()

    def take(self, batch: Batch) -> None:
        """Let a batch arrive: all at the time of its first message."""
        clock = self._next(batch)
        ex = Execution(lambda: clock)
        taken = [m for b in run(self._processors, [batch], ex) for m in b]
        if not taken:
            for message in batch:
                event = self._event(message, clock)
                event.dropped, event.why = "input.processors", "left out by input.processors"
        for message in taken:
            event = self._event(message, clock)
            event.time = self._times.of(message, clock)
            self._player.send(clock, message.with_meta(**{_NUMBER: event.number}))

    def end(self) -> Timeline:
        """End the input, and go on until no window is held back by the clock."""
        clock = self._clock if self._clock is not None else self._now()
        ended = self._player.end(clock, wait=self._window.end_of_input == "wait")
        # What is held then goes on to the next start, which shows what it is.
        self._is_over = True
        self._player.start_again()
        return Timeline(
            self._name, self._window, self._events, self._spans.all(), self._emissions, ended
        )

    def _event(self, message: Message, clock: int) -> Event:
        text = message.raw.decode(errors="replace")
        event = Event(len(self._events) + 1, text, clock)
        self._events.append(event)
        return event

    def _next(self, batch: Batch) -> int:
        """Return the clock when a batch arrives; it never runs backwards."""
        before = self._clock
        if self._arrival is not None:
            at = self._arrived(self._arrival, batch)
        elif before is None and self._arrivals.clock is not None:
            at = self._arrivals.clock
        elif before is not None and self._arrivals.step is not None:
            at = before + self._arrivals.step
        else:
            now = before if before is not None else self._now()
            time = self._times.of(batch[0], now)
            at = now if time is None else time
        self._clock = at if before is None else max(before, at)
        return self._clock

    def _arrived(self, mapping: Mapping, batch: Batch) -> int:
        try:
            return parse_event_time(mapping.query(batch, 0, Execution(self._now)))
        except (MessageError, ValueError) as e:
            number = len(self._events) + 1
            raise StreamerError(
                f"--arrival: message {number} has no time of arrival: {e}"
            ) from None

    def _note(self, outcome: Outcome, now: int) -> None:
        for batch in outcome.batches:
            self._note_batch(batch, now)
        for message in outcome.dropped:
            event = self._event_of(message)
            event.dropped = str(message.meta[REASON])
            event.why = self._why(event)

    def _event_of(self, message: Message) -> Event:
        number: int = message.meta[_NUMBER]
        return self._events[number - 1]

    def _note_batch(self, batch: Batch, now: int) -> None:
        events = [self._event_of(message) for message in batch]
        emission = self._spans.emitted(batch[0].meta, [event.number for event in events], now)
        if emission is None:
            for event, message in zip(events, batch, strict=True):
                event.failed = str(message.error)
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

    def _why(self, event: Event) -> str:
        if event.dropped != "late":
            return _WHY.get(event.dropped, "its buffer dropped it")
        if event.time is None or not isinstance(self._window, SystemWindow):
            return "its last window had closed"
        last = self._window.grid.last_end(event.time)
        due = self._window.due(last)
        if due <= event.arrived:
            return f"its last window closed at {format_rfc3339(due)}"
        return "its windows ended before the stream began"


def _compiled(mapping: str) -> Mapping | None:
    try:
        return compile_mapping(mapping) if mapping else None
    except BloblangError as e:
        raise StreamerError(f"--arrival: {e}") from None
