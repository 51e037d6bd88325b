"""A scripted stream on a clock that follows what arrives, called whenever a window is due."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from streamer.bloblang import compile_mapping
from streamer.core.durations import MILLISECOND
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.timestamps import parse_event_time, parse_rfc3339
from streamer.engine.offline.scripted import BatchOutcome, ScriptedMessage, ScriptedStream
from streamer.plan import Plan
from streamer.plan.buffer_chain import find_readers
from streamer.plan.window_plan import Aggregation
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.window.pack.window_metadata import WINDOW_END
from streamer.window.settings.window import Window

_MAX_TICKS = 100_000


def truncate_after_windows(plan: Plan) -> Plan:
    """Return a plan that ends where its windows are emitted, whole, and gives what is dropped.

    What comes after does not decide which message is in which window.
    """
    bare = ParsedComponent(Kind.OUTPUT, "drop")
    if plan.buffers:
        # What comes out of one decides what is in the windows of the next.
        whole = Aggregation(None)
        return replace(
            plan,
            buffers=tuple(
                replace(one, late_output=bare, windows=replace(one.windows, aggregation=whole))
                for one in plan.buffers
            ),
        )
    # Keys of the buffer are a part of its windows; those of a `group_by_value` come after them.
    key = plan.key if plan.window is not None and plan.window.keyed else None
    return replace(
        plan, processors=(), key=key, aggregation=Aggregation(None), output=bare, late_output=bare
    )


def truncate_after_buffer(
    plan: Plan, number: int, last_processors: Sequence[ParsedComponent] = ()
) -> Plan:
    """Return a plan that ends where the windows of one of several buffers are emitted, whole.

    It has the buffers before that one, with their pipelines, and gives what that one drops.

    Args:
        plan: the stream's.
        number: the buffer's.
        last_processors: what the results that it takes go through besides.
    """
    numbers = {number}
    while more := {at for one in numbers for at in plan.buffers[one].sources} - numbers:
        numbers |= more
    chain = sorted(numbers, key=lambda at: (plan.buffers[at].level, at))
    bare, whole = ParsedComponent(Kind.OUTPUT, "drop"), Aggregation(None)
    buffers = []
    for place in chain:
        one = plan.buffers[place]
        is_last = place == number
        processors = () if is_last else one.processors
        if place in plan.buffers[number].sources:
            processors = (*processors, *last_processors)
        buffers.append(
            replace(
                one,
                sources=tuple(chain.index(at) for at in one.sources),
                processors=processors,
                output=bare if is_last else None,
                late_output=bare if is_last else None,
                windows=replace(one.windows, aggregation=whole),
            )
        )
    return replace(plan, buffers=tuple(buffers))


def find_buffer(plan: Plan, label: str) -> int | None:
    """Return the number of one of several buffers; None for a stream that has one.

    Args:
        plan: the stream's.
        label: the buffer's; empty for the first one behind the input.

    Raises:
        StreamerError: there is none.
    """
    if not plan.buffers and not label:
        return None
    by_label = {one.label: number for number, one in enumerate(plan.buffers)}
    if label and label not in by_label:
        known = f"its buffers are {', '.join(by_label)}" if by_label else "it has one"
        raise StreamerError(f"{plan.name} has no buffer {label!r}; {known}")
    return by_label[label] if label else find_readers(plan, None)[0]


class EventTimeReader:
    """Finds the event times of messages as stage 1 does."""

    def __init__(self, plan: Plan) -> None:
        """Take the mapping of a plan with windows; those that count messages have none."""
        self._mapping = compile_mapping(plan.timestamp) if plan.timestamp else None

    def read(self, message: Message, now: int) -> int | None:
        """Return a message's event time, ns; None when it has none. `now` is what `now()` gives."""
        time = self.read_or_explain(message, now)
        return None if isinstance(time, str) else time

    def read_or_explain(self, message: Message, now: int) -> int | str | None:
        """Return a message's event time, ns, or why it has none; None for windows that count."""
        if self._mapping is None:
            return None
        try:
            return parse_event_time(self._mapping.query([message], 0, Execution(lambda: now)))
        except (MessageError, ValueError) as e:
            return str(e)


class WindowSimulator:
    """Runs micro-batches: one for all that arrives at a time, one whenever a window is due."""

    def __init__(
        self,
        plan: Plan,
        on_outcome: Callable[[BatchOutcome, int], None],
        known: Iterable[ScriptedMessage] = (),
        has_pipeline: bool = False,
    ) -> None:
        """Begin.

        Args:
            plan: the stream's plan, with windows.
            on_outcome: called with the outcome of each micro-batch, and the clock, ns.
            known: messages of two inputs that are joined, each with its input; see
                `ScriptedStream`.
            has_pipeline: whether the plan goes on behind its windows, so that batches do not name
                the windows that they are of.

        Raises:
            StreamerError: the windows join two inputs, and messages do not say which they are from.
        """
        known = tuple(known)
        if plan.window is not None and plan.window.join is not None and not known:
            raise StreamerError(
                "a join reads two inputs, and sample messages do not say from which of them "
                "they are; write a test instead, with `target: stream` and `input: <label>` beside "
                "each message"
            )
        self._stream = ScriptedStream(plan, known=known)
        # What comes out of several buffers comes in micro-batches as they are due.
        self._window = None if len(plan.buffers) > 1 or has_pipeline else plan.window
        self._on_outcome = on_outcome
        self._clock: int | None = None
        self._sent: list[ScriptedMessage] = []

    def send(self, clock: int, message: Message, label: str = "") -> None:
        """Let a message arrive at a time, ns, which is not before that of the one before it.

        Args:
            clock: the time.
            message: the message.
            label: of the input that it is from, where windows join two.

        Raises:
            StreamerError: too many windows lie between the two.
        """
        if clock != self._clock:
            self._run_arrived()
            self._clock = clock
        self._sent.append(ScriptedMessage(message, input=label))

    def end(self, now: int, wait: bool) -> int:
        """End the input.

        Args:
            now: the clock, when nothing has arrived.
            wait: go on until no window is open.

        Returns:
            The clock at the end.
        """
        if self._clock is None:
            self._clock = now
        self._run_arrived(ended=True)
        if wait:
            self._close_due(None)
        return self._stream.now

    @property
    def open_messages(self) -> int:
        """Number of messages in open windows."""
        return self._stream.snapshot.held

    def restart(self) -> None:
        """Start the program again, and go on until no window is open."""
        self._stream.restart()
        self._close_due(None)

    def _run_arrived(self, ended: bool = False) -> None:
        if self._clock is not None:
            self._close_due(self._clock)
            self._micro_batch(self._clock, ended)

    def _close_due(self, until: int | None) -> None:
        """Call the kernel whenever a window is due, up to a time, or until none is open."""
        closed = 0
        while closed <= _MAX_TICKS:
            due = self._stream.snapshot.next_close
            if due is None or (until is not None and due >= until):
                return
            closed += self._close_next(due, until)
        raise StreamerError(
            f"more than {_MAX_TICKS:,} windows lie between the messages; "
            "choose larger windows, or messages that are closer together"
        )

    def _close_next(self, due: int, until: int | None) -> int:
        """Close what is due, and of windows that may expire some of what is due soon after.

        Each window is told of as of the time when it is due, as if the kernel had been called then.

        Args:
            due: when the next window is.
            until: the windows before this time; None for all.

        Returns:
            How many times that was.
        """
        window = self._window
        if window is None or window.expire_delay is None:
            self._micro_batch(due)
            return 1
        last = self._last_due(window, window.expire_delay, due, until)
        outcome = self._stream.run_micro_batch(last)
        closed = 0
        for at, batches in groupby(outcome.batches, lambda batch: _due_time(window, batch)):
            self._on_outcome(BatchOutcome([*batches], []), max(at, due))
            closed += 1
        return max(closed, 1)

    def _last_due(self, window: Window, expire_delay: int, due: int, until: int | None) -> int:
        """Return the last time when windows are due that close in one micro-batch with the next.

        So long after the first of them was due, none has expired yet.
        """
        last = due + max(expire_delay - MILLISECOND, 0)
        last = last if until is None else min(last, until - 1)
        newest = self._stream.newest_end
        last = last if newest is None else min(last, window.due_time(newest))
        return max(due, window.due_time(window.closed_until(last // MILLISECOND * MILLISECOND)))

    def _micro_batch(self, clock: int, ended: bool = False) -> None:
        sent = self._sent if clock == self._clock else []
        self._sent = [] if clock == self._clock else self._sent
        self._on_outcome(self._stream.run_micro_batch(clock, sent, ended), self._stream.now)


def _due_time(window: Window, batch: Batch) -> int:
    """Return when the window of a batch is due, ns."""
    return window.due_time(parse_rfc3339(batch[0].meta[WINDOW_END]).ns)
