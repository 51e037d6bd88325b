"""The cost of a stream, by what a sample of its messages took.

The sample runs through the stages twice: as one micro-batch, and as several. `state_model` says how
the state goes on from there, `cost_model` what Spark takes beside the stages.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from streamer.core.message import Batch
from streamer.plan import Plan
from streamer.tools.cost import cost_model as model
from streamer.tools.cost.advice import find_advice, find_warnings
from streamer.tools.cost.machine_speed import measure_slowness
from streamer.tools.cost.measure import SampleCost, SampledInput, measure_sample
from streamer.tools.cost.sample_facts import SampleFacts, read_facts
from streamer.tools.cost.state_model import BufferModel, PeakState, WriteModel

_CUTS: Final = 8
"""Micro-batches of the second measurement."""

_WARM_MESSAGES: Final = 2_000

_DEFAULT_BACKLOG: Final = 1_000_000
_BACKLOG_SECONDS: Final = 3_600


@dataclass(frozen=True, slots=True)
class LoadCost:
    """The cost of a stream under one load.

    Attributes:
        batch_messages: messages of a micro-batch.
        cpu_seconds: CPU time for a million messages.
        memory_bytes: memory of all processes.
        held: messages held at the peak, by all buffers.
        state_bytes: bytes of state at the peak.
        checkpoint_bytes: bytes of the checkpoint at its peak.
        by_buffer: by label of a buffer, its state.
    """

    batch_messages: float
    cpu_seconds: float
    memory_bytes: float
    held: float
    state_bytes: float
    checkpoint_bytes: float
    by_buffer: dict[str, PeakState]


@dataclass(frozen=True, slots=True)
class CostReport:
    """The cost of a stream.

    Attributes:
        sample: what the sample took.
        facts: rate and keys of the sample.
        rate: messages a second; 0 where it is not known.
        live: the cost of a stream that keeps up; None where the rate is not known.
        backlog: the cost of a stream that catches up.
        backlog_messages: messages that wait.
        cores: cores in use at that rate; 0 where it is not known.
        warnings: what is not bounded.
        advice: settings that would cost less.
    """

    sample: SampleCost
    facts: SampleFacts
    rate: float
    live: LoadCost | None
    backlog: LoadCost
    backlog_messages: float
    cores: float
    warnings: tuple[str, ...]
    advice: tuple[str, ...]

    @property
    def usual(self) -> LoadCost:
        """The cost at the rate, where that is known; else with a backlog."""
        return self.live or self.backlog


def estimate_stream(
    plan: Plan,
    sample: Sequence[Batch] | Sequence[SampledInput],
    rate: float | None = None,
    backlog: float | None = None,
) -> CostReport:
    """Return the cost of a stream by a sample of its messages.

    Args:
        plan: the stream's plan.
        sample: its first messages, as the input gives them; of several inputs, those of each.
        rate: messages a second of all inputs; None for that of the sample's event times.
        backlog: messages that wait when the stream catches up; None for those of an hour, or for a
            million where the rate is not known.
    """
    inputs = [one for one in sample if isinstance(one, SampledInput)]
    if not inputs:
        batches = [one for one in sample if not isinstance(one, SampledInput)]
        inputs = [SampledInput(plan.input, batches)]
    facts = read_facts(plan, inputs)
    now = _find_time(plan, facts)
    count = sum(one.count for one in inputs)
    cuts = min(_CUTS, max(count, 1))
    begins = now - facts.span
    times = [begins + facts.span * (n + 1) // cuts for n in range(cuts)]
    # The first run takes what a process loads and compiles once.
    measure_sample(plan, [_take_head(one, _WARM_MESSAGES) for one in inputs], [now])
    whole, cut = (measure_sample(plan, inputs, one) for one in ([now], times))
    per_second = facts.rate if rate is None else rate
    waiting = backlog or (per_second * _BACKLOG_SECONDS) or _DEFAULT_BACKLOG
    estimate = _Estimate(plan, whole, cut, facts, per_second, measure_slowness())
    pace = model.pace_backlog(plan, waiting, whole.size / max(whole.messages, 1))
    live = estimate.find_cost(model.pace_live(plan, per_second)) if per_second else None
    return CostReport(
        sample=whole,
        facts=facts,
        rate=per_second,
        live=live,
        backlog=estimate.find_cost(pace),
        backlog_messages=waiting,
        cores=per_second * live.cpu_seconds / 1e6 if live else 0.0,
        warnings=tuple(find_warnings(plan, facts)),
        advice=tuple(find_advice(plan, cut)),
    )


def _take_head(one: SampledInput, count: int) -> SampledInput:
    return replace(one, batches=one.batches[:count])


def _find_time(plan: Plan, facts: SampleFacts) -> int:
    """Return the time of the last micro-batch: the clock on the wall has closed old windows."""
    on_wall = any(not window.uses_event_time for window in plan.windows)
    return facts.newest if on_wall and facts.newest is not None else time.time_ns()


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A sample that was measured, from which loads are estimated.

    Attributes:
        plan: the stream's plan.
        whole: the cost of the sample as one micro-batch.
        cut: the cost of the sample in several.
        facts: rate and keys of the sample.
        rate: messages a second; 0 where it is not known.
        slow: the factor of this machine to the one of the constants.
    """

    plan: Plan
    whole: SampleCost
    cut: SampleCost
    facts: SampleFacts
    rate: float
    slow: float

    def find_cost(self, pace: model.Pace) -> LoadCost:
        """Return the cost of a load."""
        buffers = self._model_buffers()
        peaks = {one.whole.label: one.find_peak(pace.messages, pace.total) for one in buffers}
        held = max((one.count_waiting_messages() for one in buffers), default=0.0)
        state = sum(one.size for one in peaks.values())
        written = WriteModel(self.whole, self.cut).count_bytes(pace.messages, held)
        plan, share = self.plan, self.whole.disk_share
        return LoadCost(
            batch_messages=pace.messages,
            cpu_seconds=model.estimate_cpu(plan, self.whole, self.cut, pace, self.slow),
            memory_bytes=model.estimate_memory(plan, self.whole, pace, state),
            held=sum(one.held for one in peaks.values()),
            state_bytes=state,
            checkpoint_bytes=model.estimate_checkpoint(plan, written * share, pace, state * share),
            by_buffer=peaks,
        )

    def _model_buffers(self) -> list[BufferModel]:
        sizes = (self.whole.messages, self.cut.batch_messages)
        pairs = zip(self.whole.buffers, self.cut.buffers, strict=True)
        return [BufferModel(*pair, *sizes, self.rate, self.facts.keys) for pair in pairs]
