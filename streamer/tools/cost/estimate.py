"""The cost of a stream at its rate, by what a sample of its messages took.

A message is held from its arrival until its last window has closed: at most for the size of a
window and its lateness. The state at its peak is that of the sample, for that time at the rate of
the sample. The time of the JVM, the memory of processes and the size of the checkpoint are rules of
thumb: no test holds them against a run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamer.core.durations import SECOND, format_duration
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.engine.offline.window_simulator import EventTimeReader
from streamer.plan import Plan
from streamer.plan.plan import count_cores
from streamer.sdk.processing import run
from streamer.tools.cost.measure import SampleCost, measure_sample
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.system_window import SystemWindow
from streamer.window.settings.window_types import Global, Join, Session, Sliding, Tumbling

_JVM_SECONDS_PER_MILLION: Final = 2.0
"""CPU time of Spark's JVM for a million messages in large micro-batches; a guess."""

_BATCH_SECONDS: Final = 0.1
"""CPU time of a micro-batch with windows, whatever its size; see `docs/developing.md`."""

_BASE_MEMORY_BYTES: Final = 1_200 << 20
_WORKER_MEMORY_BYTES: Final = 150 << 20
_CHECKPOINT_FACTOR: Final = 2
"""State files of the versions that Spark keeps, by the state."""

_MIN_MEASURED_MESSAGES: Final = 500
_GROWING_SHARE: Final = 0.2
_MANY_WINDOWS: Final = 50


@dataclass(frozen=True, slots=True)
class CostReport:
    """The cost of a stream.

    Attributes:
        sample: what the sample took.
        rate: messages a second; 0 where it is not known.
        keys: keys in the sample; 0 without keys.
        new_keys: share of the keys that came in the second half of the sample only.
        held: messages held at the peak.
        state_bytes: bytes of state at the peak.
        cpu_seconds: CPU time for a million messages.
        cores: cores in use at that rate; 0 where it is not known.
        memory_bytes: memory of all processes.
        checkpoint_bytes: bytes of the checkpoint.
        windows_per_message: how many windows hold a message.
        warnings: what is not bounded.
        advice: settings that would cost less.
    """

    sample: SampleCost
    rate: float
    keys: int
    new_keys: float
    held: float
    state_bytes: float
    cpu_seconds: float
    cores: float
    memory_bytes: float
    checkpoint_bytes: float
    windows_per_message: float
    warnings: tuple[str, ...]
    advice: tuple[str, ...]


def estimate_stream(plan: Plan, sample: Sequence[Batch], rate: float | None = None) -> CostReport:
    """Return the cost of a stream by a sample of its messages.

    Args:
        plan: the stream's plan, with one buffer or none.
        sample: its first messages, as the input gives them.
        rate: messages a second; None for that of the sample's event times.
    """
    facts = _read_facts(plan, sample)
    window = plan.window
    # The clock on the wall has closed the windows of old messages.
    on_wall = window is not None and not window.uses_event_time and facts.newest is not None
    now = facts.newest if on_wall and facts.newest is not None else time.time_ns()
    cost = measure_sample(plan, sample, now)
    per_second = facts.rate if rate is None else rate
    hold = _measure_hold(plan)
    held, state = float(cost.held), float(cost.state_bytes)
    if hold is not None and cost.held and per_second:
        held = per_second * hold / SECOND
        state = cost.state_bytes * held / cost.held
    cpu = cost.seconds / max(cost.messages, 1) * 1e6 + _JVM_SECONDS_PER_MILLION
    interval = max(plan.interval, SECOND) / SECOND
    batches = _BATCH_SECONDS / interval if plan.window is not None else _BATCH_SECONDS / 2
    copies = _count_windows(plan)
    workers = count_cores(plan.master) if plan.master.startswith("local") else 2
    return CostReport(
        sample=cost,
        rate=per_second,
        keys=facts.keys,
        new_keys=facts.new_keys,
        held=held,
        state_bytes=state,
        cpu_seconds=cpu,
        cores=per_second * cpu / 1e6 + batches if per_second else 0.0,
        memory_bytes=_BASE_MEMORY_BYTES + workers * _WORKER_MEMORY_BYTES,
        checkpoint_bytes=state * _CHECKPOINT_FACTOR,
        windows_per_message=copies,
        warnings=tuple(_find_warnings(plan, facts, copies)),
        advice=tuple(_find_advice(plan, cost, copies)),
    )


@dataclass(frozen=True, slots=True)
class _Facts:
    rate: float
    keys: int
    new_keys: float
    newest: int | None


def _read_facts(plan: Plan, sample: Sequence[Batch]) -> _Facts:
    """Read event times and keys of a sample."""
    ex = Execution(lambda: 0)
    processors = plan.context().build_all(plan.input.processors)
    messages = [one for batch in run(processors, list(sample), ex) for one in batch]
    times = EventTimeReader(plan)
    key = plan.key.compile() if plan.key is not None else None
    known: list[int] = []
    keys: dict[Any, None] = {}
    early = 0
    for number, message in enumerate(messages):
        at = times.read(message, 0) if plan.timestamp else None
        if at is not None:
            known.append(at)
        if key is not None:
            try:
                keys.setdefault(repr(key.query([message], 0, ex)))
            except Exception:  # such a message is dropped, and has no key
                continue
        if number < len(messages) // 2:
            early = len(keys)
    span = (max(known) - min(known)) / SECOND if known else 0.0
    rate = len(known) / span if span > 0 else 0.0
    return _Facts(rate, len(keys), 1 - early / len(keys) if keys else 0.0, max(known, default=None))


def _measure_hold(plan: Plan) -> int | None:
    """Return how long a message is held at most, ns; None where that is not bounded."""
    window = plan.window
    if isinstance(window, SystemWindow):
        return window.size + window.allowed_lateness
    if not isinstance(window, EventWindow):
        return None
    kind, lateness = window.kind, window.allowed_lateness
    if isinstance(kind, Tumbling | Sliding):
        return kind.size + lateness
    if isinstance(kind, Join):
        return max(abs(kind.before), abs(kind.after)) + lateness
    return None


def _count_windows(plan: Plan) -> float:
    """Return how many windows hold a message; 1 where that is not known."""
    window = plan.window
    if isinstance(window, SystemWindow):
        return window.size / (window.slide or window.size)
    if isinstance(window, EventWindow) and isinstance(window.kind, Tumbling):
        return window.kind.size / window.kind.every
    return 1.0


def _find_warnings(plan: Plan, facts: _Facts, copies: float) -> Iterator[str]:
    window = plan.window
    if facts.new_keys > _GROWING_SHARE and facts.keys > 1:
        yield (
            f"{facts.new_keys:.0%} of the {facts.keys:,} keys came in the second half of the "
            "sample only: keys may have no bound"
        )
    if plan.keyed_state.users and plan.keyed_state.ttl is None:
        yield "processors keep a state for each key without expiry: set ttl of the state"
    if isinstance(window, EventWindow):
        if isinstance(window.kind, Global):
            yield "a window of each key never closes: its state stays for good"
        if isinstance(window.kind, Session) and window.kind.max_duration is None:
            yield "a session has no largest duration: set max_duration"
        if window.count_based:
            yield "a window of a key that is silent stays open for good"
        if window.time.clock_scope == "key":
            kept = format_duration(window.time.key_retention)
            yield f"the clock of each key is kept for {kept} after its last message"
    if copies >= _MANY_WINDOWS:
        yield f"each message is in {copies:,.0f} windows, and is emitted as often: raise the step"


def _find_advice(plan: Plan, cost: SampleCost, copies: float) -> Iterator[str]:
    window = plan.window
    if window is None:
        return
    if plan.aggregation.text is None and plan.aggregation.obstacle:
        yield f"windows keep whole messages: {plan.aggregation.obstacle}"
    hold = _measure_hold(plan)
    if hold and window.allowed_lateness * 2 > hold:
        yield "allowed_lateness is longer than the window: most of the state waits for late ones"
    if plan.key is None and plan.shards > 1:
        yield f"windows have no key, so one of {plan.shards} shards does all: add a key_mapping"
    elif cost.shards and cost.shards < plan.shards:
        yield f"{cost.shards} of {plan.shards} shards get messages: the keys are few"
    if plan.master.startswith("local") and plan.shards > count_cores(plan.master):
        yield f"spark.shards is {plan.shards}: more shards than cores cost more CPU"


def format_report(report: CostReport) -> Iterator[str]:
    """Give the lines of a report."""
    cost = report.sample
    size = cost.size / max(cost.messages, 1)
    yield f"cost by a sample of {cost.messages:,} messages, {size:,.0f} bytes each"
    digits = 0 if report.rate >= 10 else 4
    rate = f"{report.rate:,.{digits}f} messages/s" if report.rate else "not known: give --rate"
    yield f"  rate        {rate}"
    is_measured = cost.messages >= _MIN_MEASURED_MESSAGES
    if is_measured:
        yield f"  CPU         {report.cpu_seconds:,.1f} s for a million messages"
    else:
        yield f"  CPU         not known: needs a sample of {_MIN_MEASURED_MESSAGES} messages"
    if report.cores and is_measured:
        yield f"  cores       {report.cores:,.2f} at that rate"
    yield f"  memory      {_format_size(report.memory_bytes)}"
    if cost.held:
        yield f"  state       {_format_size(report.state_bytes)}, {report.held:,.0f} messages held"
        each = report.state_bytes / max(report.held, 1)
        windows = report.windows_per_message
        yield f"  a message   {each:,.1f} bytes of state, in {windows:,.1f} windows"
        yield f"  checkpoint  {_format_size(report.checkpoint_bytes)}"
    if report.keys:
        each = report.state_bytes / report.keys
        yield f"  keys        {report.keys:,} in the sample, {_format_size(each)} of state each"
    for warning in report.warnings:
        yield f"  warning     {warning}"
    for advice in report.advice:
        yield f"  advice      {advice}"


def _format_size(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError
