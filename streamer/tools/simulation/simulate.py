"""Run sample messages through a whole stream on a scripted clock: input processors to outputs.

Messages arrive by their event times, or as the caller wants. A micro-batch runs for all that arrive
at one time, and whenever a window is due. Outputs send nothing: their processors run, and the
batches are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.log_format import LogLine
from streamer.core.message import Message
from streamer.engine.offline.arrival_clock import ArrivalClock, ArrivalTimes
from streamer.engine.offline.scripted import BatchOutcome, ScriptedMessage
from streamer.engine.offline.window_simulator import EventTimeReader, WindowSimulator
from streamer.engine.results.window_frame import EmittedMessage
from streamer.plan import Plan
from streamer.plan.buffer_chain import find_readers, plan_of_buffer
from streamer.plan.component_lookup import leaf_inputs
from streamer.sdk.lookup_table import use_local_tables
from streamer.sdk.processing import run
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.window.assign.pack_builder import DROP_REASON

_DROP_REASON: Final = "drop_reason"
DROPPED_COLUMNS: Final[Mapping[str, pa.DataType]] = {_DROP_REASON: pa.string()}
"""The columns of dropped messages that others do not have."""

_NO_OUTPUT: Final = ParsedComponent(Kind.OUTPUT, "drop")


@dataclass(slots=True)
class SimulatedStream:
    """The outcome of a simulation.

    Attributes:
        emitted: the messages that outputs got, in order.
        dropped: the messages that windows dropped, in order, each with `drop_reason`.
        open_messages: number of messages in windows that are open at the end.
        ended_at: the clock at the end, Unix ns.
    """

    emitted: list[EmittedMessage] = field(default_factory=list)
    dropped: list[EmittedMessage] = field(default_factory=list)
    open_messages: int = 0
    ended_at: int = 0


def simulate_stream(
    plan: Plan,
    sample: Sequence[ScriptedMessage],
    arrivals: ArrivalTimes,
    now: Callable[[], int],
    log: LogLine = lambda level, text, fields: None,
) -> SimulatedStream:
    """Run messages through a stream to the end of its input.

    Args:
        plan: the stream's plan.
        sample: the messages in order of arrival, as the input gives them.
        arrivals: when they arrive.
        now: the clock of the first message, when nothing else gives it.
        log: takes log lines of components.

    Raises:
        StreamerError: a message has no time of arrival, or the windows join two inputs and it does
            not name one of them.
    """
    _check_inputs(plan, sample)
    with use_local_tables(plan.resources, plan.context()):
        return _StreamSimulation(plan, arrivals, now, log, sample).run(sample)


def _check_inputs(plan: Plan, sample: Iterable[ScriptedMessage]) -> None:
    joins = plan.window is not None and plan.window.join is not None
    labels = {one.label for one in leaf_inputs(plan.input, plan.resources)} - {""}
    for message in sample:
        if message.input and message.input not in labels:
            known = ", ".join(sorted(labels)) or "no input has one"
            raise StreamerError(
                f"there is no input with the label {message.input!r}; the labels are: {known}"
            )
        if joins and not message.input:
            raise StreamerError(
                "a join reads two inputs: give the messages by the label of their input, as "
                "{label: messages}"
            )


class _StreamSimulation:
    def __init__(
        self,
        plan: Plan,
        arrivals: ArrivalTimes,
        now: Callable[[], int],
        log: LogLine,
        sample: Sequence[ScriptedMessage],
    ) -> None:
        self._plan, self._now, self._log = plan, now, log
        self._outcome = SimulatedStream()
        self._batches = 0
        first = plan_of_buffer(plan, find_readers(plan, None)[0]) if plan.buffers else plan
        self._clock = ArrivalClock(EventTimeReader(first), arrivals, now)
        self._processors = plan.context().build_all(plan.input.processors)
        self._simulator = WindowSimulator(
            _with_late_output(plan),
            self._record,
            known=[one for one in sample if one.input],
            has_pipeline=True,
        )

    def run(self, sample: Sequence[ScriptedMessage]) -> SimulatedStream:
        for number, one in enumerate(sample, 1):
            clock = self._clock.advance([one.message], number)
            self._send(one, clock)
        window = self._plan.window
        clock = self._clock.now if self._clock.now is not None else self._now()
        wait = window is not None and window.end_of_input == "wait"
        self._outcome.ended_at = self._simulator.end(clock, wait=wait)
        self._outcome.open_messages = self._simulator.open_messages
        return self._outcome

    def _send(self, one: ScriptedMessage, clock: int) -> None:
        ex = Execution(lambda: clock, self._log)
        for batch in run(self._processors, [[one.message]], ex):
            for message in batch:
                self._simulator.send(clock, message, one.input)

    def _record(self, outcome: BatchOutcome, now: int) -> None:
        for batch in outcome.batches:
            self._outcome.emitted += [EmittedMessage(now, self._batches, one) for one in batch]
            self._batches += 1
        for message in outcome.dropped:
            self._outcome.dropped.append(_describe_drop(message, now))


def _describe_drop(message: Message, now: int) -> EmittedMessage:
    reason = message.meta.get(DROP_REASON)
    kept = {name: value for name, value in message.meta.items() if name != DROP_REASON}
    extra = {_DROP_REASON: None if reason is None else str(reason)}
    return EmittedMessage(now, 0, message.with_metadata(kept), extra)


def _with_late_output(plan: Plan) -> Plan:
    """Return a plan that gives dropped messages as they are, whatever it does with them."""
    if plan.window is None:
        return plan
    buffers = tuple(replace(one, late_output=_NO_OUTPUT) for one in plan.buffers)
    return replace(plan, late_output=_NO_OUTPUT, buffers=buffers)
