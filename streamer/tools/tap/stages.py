"""Run messages through a plan stage by stage, with the components that Spark's workers run.

Windows are those of the real kernel, on a clock that follows the messages' event times. The output
gets nothing; processors that reach out (to a server, say) do so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.offline.scripted import BatchOutcome
from streamer.engine.offline.window_simulator import (
    EventTimeReader,
    WindowSimulator,
    truncate_after_buffer,
    truncate_after_windows,
)
from streamer.plan import Plan
from streamer.plan.buffer_chain import plan_of_buffer
from streamer.sdk.processing import run_processor
from streamer.sdk.spec import ParsedComponent

_CLOCK_NOTE = "on a clock that follows event times"

LogLine = tuple[str, str, Mapping[str, Any]]


@dataclass
class Stage:
    """The output of one component.

    Attributes:
        path: where it stands in the config.
        name: the component's name.
        label: its label, or an empty string.
        batches: what came out of it.
        dropped: of a window buffer: the messages that it dropped, the reason in their metadata.
        logged: what it logged.
        note: a word about it, or an empty string.
    """

    path: str
    name: str
    label: str
    batches: list[Batch]
    dropped: Batch = field(default_factory=list)
    logged: list[LogLine] = field(default_factory=list)
    note: str = ""


def tap(
    plan: Plan, sample: Sequence[Batch], now: Callable[[], int] = time.time_ns
) -> Iterator[Stage]:
    """Run a sample through a plan.

    Args:
        plan: the stream's plan.
        sample: batches as the input gives them.
        now: the clock, Unix ns.

    Returns:
        The stages in the order of a message's way, each as soon as it is done; the last is the
        output, with what it would have been given.
    """
    log: list[LogLine] = []
    ex = Execution(
        now, lambda level, text, fields: log.append((level, text, fields)), strict=plan.strict
    )
    context = plan.context()
    batches = [[message.copy() for message in batch] for batch in sample]
    yield _make_stage(plan.input, batches)
    for component in plan.input.processors:
        batches = _process_batches(component, batches, context, ex)
        yield _make_stage(component, batches, logged=_drain_log(log))
    if plan.buffers:
        for number in sorted(range(len(plan.buffers)), key=lambda at: plan.buffers[at].level):
            windows = truncate_after_buffer(plan, number)
            emitted, stage = _run_windows(windows, plan.buffers[number].component, batches, now)
            yield stage
            has_output = plan.buffers[number].output is not None
            own = plan_of_buffer(plan, number)
            yield from _tap_pipeline(own, emitted, ex, now, log, has_output)
        return
    if plan.window is not None:
        batches, stage = _run_windows(truncate_after_windows(plan), plan.buffer, batches, now)
        yield stage
    elif plan.buffer.name != "none":
        batches = [list(batch) for batch in context.build(plan.buffer).batches(batches, ex)]
        yield _make_stage(plan.buffer, batches, logged=_drain_log(log))
    yield from _tap_pipeline(plan, batches, ex, now, log)


def _tap_pipeline(
    plan: Plan,
    batches: list[Batch],
    ex: Execution,
    now: Callable[[], int],
    log: list[LogLine],
    has_output: bool = True,
) -> Iterator[Stage]:
    """Run what comes out of a buffer through its pipeline, and its output's processors."""
    context = plan.context()
    processors = (*plan.processors, *plan.output.processors)
    if plan.keyed_state.users:
        made = _process_by_key(plan, batches, ex, now, log)
        batches = made[-1].batches
        yield from made
        processors = plan.output.processors
    for component in processors:
        batches = _process_batches(component, batches, context, ex)
        yield _make_stage(component, batches, logged=_drain_log(log))
    if has_output:
        yield _make_stage(plan.output, batches, note="nothing is written")


def _process_batches(
    component: ParsedComponent, batches: list[Batch], context: Any, ex: Execution
) -> list[Batch]:
    # Messages are shown after every stage, so the next one works on copies.
    copies = [[message.copy() for message in batch] for batch in batches]
    return run_processor(context.build(component), copies, ex, strict=ex.strict)


def _process_by_key(
    plan: Plan,
    batches: list[Batch],
    ex: Execution,
    now: Callable[[], int],
    log: list[LogLine],
) -> list[Stage]:
    """Return the stages of a pipeline that keeps state by key: each batch runs through all."""
    # Imported here: most streams keep no state by key.
    from streamer.tools.tap.keyed_batches import SampledState

    state = SampledState(plan, ex, now)
    ex.keyed_state = state.values
    context = plan.context()
    built = [context.build(component) for component in plan.processors]
    made: list[list[Batch]] = [[] for _ in built]
    logged: list[list[LogLine]] = [[] for _ in built]
    for batch in filter(None, batches):
        state.begin(batch)
        current = [batch]
        for place, processor in enumerate(built):
            copies = [[message.copy() for message in one] for one in current]
            current = run_processor(processor, copies, ex, strict=ex.strict)
            made[place] += current
            logged[place] += _drain_log(log)
    return [
        _make_stage(component, made[place], logged=logged[place])
        for place, component in enumerate(plan.processors)
    ]


def _run_windows(
    plan: Plan, buffer: ParsedComponent, batches: list[Batch], now: Callable[[], int]
) -> tuple[list[Batch], Stage]:
    """Return the windows as batches, and the stage of their buffer.

    Args:
        plan: ends with the windows.
        buffer: their buffer.
        batches: what the input gave.
        now: the clock, Unix ns.
    """
    emitted: list[Batch] = []
    dropped: Batch = []

    def collect_outcome(outcome: BatchOutcome, clock: int) -> None:
        emitted.extend(outcome.batches)
        dropped.extend(outcome.dropped)

    player, times, clock = (
        WindowSimulator(plan, collect_outcome),
        EventTimeReader(plan_of_buffer(plan, 0) if plan.buffers else plan),
        None,
    )
    for batch in batches:
        for message in batch:
            time_ns = times.read(message, now() if clock is None else clock)
            clock = max(clock or 0, time_ns or 0) or now()
            player.send(clock, message)
    player.end(now() if clock is None else clock, wait=True)
    held = f"; {player.open_messages:,} in windows that stay open" if player.open_messages else ""
    return emitted, _make_stage(buffer, emitted, dropped, note=f"{_CLOCK_NOTE}{held}")


def _drain_log(log: list[LogLine]) -> list[LogLine]:
    taken = log[:]
    log.clear()
    return taken


def _make_stage(
    component: ParsedComponent,
    batches: list[Batch],
    dropped: Sequence[Message] = (),
    logged: Sequence[LogLine] = (),
    note: str = "",
) -> Stage:
    path = component.path or str(component.kind)
    filled = [batch for batch in batches if batch]
    return Stage(path, component.name, component.label, filled, [*dropped], [*logged], note)
