"""Run sample messages through the real window kernel, and note what becomes of each.

The kernel gets the messages one micro-batch at a time and is called whenever a window is due, as
Spark calls it. The pipeline is left out, since it sees a window when all is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from streamer.bloblang import Mapping, compile_mapping
from streamer.catalog import build_context
from streamer.engine.scripted import Outcome, ScriptedStream, Sent
from streamer.errors import MessageError, StreamerError
from streamer.message import Batch, Execution, Message
from streamer.pipeline import run
from streamer.plan import Plan
from streamer.plan.fold import Folding
from streamer.spec import Kind, ParsedComponent
from streamer.timestamps import format_rfc3339, parse_event_time
from streamer.window import SystemWindow
from streamer.window.drops import REASON
from streamer.window.step import END

_NUMBER = "streamer_timeline_number"
_MOST_TICKS = 100_000


@dataclass
class Event:
    """A message, and what became of it.

    Attributes:
        number: its place in the sample, from 1.
        text: its payload.
        arrived: the clock when it arrived, ns.
        time: its event time, ns; None when it has none.
        windows: the ends of the windows that it was emitted in, ns.
        waiting: the ends of the windows that still hold it, ns.
        dropped: why it was dropped (`late`, `timestamp`, `expired`, `input.processors`), or empty.
        why: the same in words.
        failed: the error that it was marked with when it passed by the windows, or empty.
    """

    number: int
    text: str
    arrived: int
    time: int | None = None
    windows: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    dropped: str = ""
    why: str = ""
    failed: str = ""


@dataclass
class Span:
    """A window that held messages.

    Attributes:
        start: ns, exclusive.
        end: ns, inclusive.
        due: when it closes by its rule, ns.
        closed: the clock when it did, ns; None when it is open still.
        numbers: its messages, in order of arrival.
    """

    start: int
    end: int
    due: int
    closed: int | None = None
    numbers: list[int] = field(default_factory=list)


@dataclass
class Timeline:
    """What happened.

    Attributes:
        name: the stream's name.
        window: the windows' settings.
        events: the messages, in order of arrival.
        spans: the windows that held messages, oldest first.
        ended: the clock at the end, ns.
    """

    name: str
    window: SystemWindow
    events: list[Event]
    spans: list[Span]
    ended: int


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
            "use `buffer: {system_window: {size: …}}`"
        )
    recorder = _Recorder(plan, plan.window, arrivals, now)
    for batch in sample:
        recorder.take(batch)
    return recorder.end()


class _Recorder:
    def __init__(
        self, plan: Plan, window: SystemWindow, arrivals: Arrivals, now: Callable[[], int]
    ) -> None:
        bare = ParsedComponent(Kind.OUTPUT, "drop")
        self._stream = ScriptedStream(
            replace(
                plan, processors=(), key=None, folding=Folding(None), output=bare, late_output=bare
            )
        )
        self._name, self._window = plan.name, window
        self._timestamp = compile_mapping(plan.timestamp)
        self._arrivals = arrivals
        self._arrival = compile_mapping(arrivals.mapping) if arrivals.mapping else None
        self._now = now
        self._clock: int | None = None
        self._due_at: int | None = None
        self._sent: list[Sent] = []
        self._is_over = False
        self._processors = build_context(plan.resources).all(plan.input.processors)
        self._events: list[Event] = []
        self._spans: dict[int, Span] = {}

    def take(self, batch: Batch) -> None:
        """Let a batch arrive: all at the time of its first message."""
        clock = self._next(batch)
        if clock != self._due_at:
            self._run()
            self._due_at = clock
        ex = Execution(lambda: clock)
        taken = [m for b in run(self._processors, [batch], ex) for m in b]
        if not taken:
            for message in batch:
                event = self._event(message, clock)
                event.dropped, event.why = "input.processors", "left out by input.processors"
        for message in taken:
            event = self._event(message, clock)
            event.time = self._time(message, ex)
            self._sent.append(Sent(message.with_meta(**{_NUMBER: event.number})))

    def end(self) -> Timeline:
        """End the input, and go on until no window is held back by the clock."""
        self._run(ended=True)
        if self._window.end_of_input == "wait":
            self._tick(None)
        ended = self._stream.now
        # What is held then goes on to the next start, which shows what it is.
        self._is_over = True
        self._stream.restart()
        self._tick(None)
        spans = sorted(self._spans.values(), key=lambda span: span.end)
        return Timeline(self._name, self._window, self._events, spans, ended)

    def _run(self, ended: bool = False) -> None:
        """Run the micro-batch of what has arrived at one time."""
        clock = self._due_at
        if clock is not None:
            self._tick(clock)
        if self._sent or ended:
            at = self._now() if clock is None else clock
            self._note(self._stream.micro_batch(at, self._sent, ended))
        self._sent = []

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
            time = self._time(batch[0], Execution(lambda: now))
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

    def _time(self, message: Message, ex: Execution) -> int | None:
        """Return a message's event time, as stage 1 finds it; None when it has none."""
        try:
            return parse_event_time(self._timestamp.query([message], 0, ex))
        except (MessageError, ValueError):
            return None

    def _tick(self, until: int | None) -> None:
        """Call the kernel whenever a window is due, up to a time, or until none is open."""
        for _ in range(_MOST_TICKS):
            due = self._stream.snapshot.next_close
            if due is None or (until is not None and due >= until):
                return
            self._note(self._stream.micro_batch(due))
        raise StreamerError(
            f"more than {_MOST_TICKS:,} windows lie between the messages; "
            "choose larger windows, or messages that are closer together"
        )

    def _note(self, outcome: Outcome) -> None:
        now = self._stream.now
        for batch in outcome.batches:
            for message in batch:
                event = self._events[message.meta[_NUMBER] - 1]
                if END not in message.meta:
                    event.failed = str(message.error)
                    continue
                end = parse_event_time(message.meta[END])
                span = self._span(end)
                span.numbers.append(event.number)
                if self._is_over:
                    event.waiting.append(end)
                else:
                    event.windows.append(end)
                    span.closed = now
        for message in outcome.dropped:
            event = self._events[message.meta[_NUMBER] - 1]
            event.dropped = str(message.meta[REASON])
            event.why = self._why(event)

    def _span(self, end: int) -> Span:
        window = self._window
        return self._spans.setdefault(end, Span(end - window.size, end, window.due(end)))

    def _why(self, event: Event) -> str:
        if event.dropped == "timestamp" or event.time is None:
            return "its timestamp_mapping gave no time"
        if event.dropped != "late":
            return "its window was overdue and dropped"
        last = self._window.grid.last_end(event.time)
        due = self._window.due(last)
        if due <= event.arrived:
            return f"its last window closed at {format_rfc3339(due)}"
        return "its windows ended before the stream began"


def numbers(found: Iterable[int]) -> str:
    """Return message numbers in short: `#1-#3, #7`."""
    runs: list[list[int]] = []
    for number in sorted(found):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"#{a}" if a == b else f"#{a}-#{b}" for a, b in runs)
