"""The cost of a backfill, from its first segment: time, CPU and disk, before all of it is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamer.plan import Plan
from streamer.plan.component_lookup import leaf_inputs
from streamer.sdk.spec import ParsedComponent
from streamer.service.backfill.scan import BackfillJob, scan_segment
from streamer.service.backfill.segments import Segment
from streamer.service.backfill.window_run import WindowTask, run_window_task
from streamer.service.backfill.work_files import SegmentFacts

_TRIAL_TASK: Final = 1_000_000_000
"""The number of the task that is tried; no other has it."""

_PURE_PROCESSORS: Final = frozenset(
    {
        *("mapping", "mutation", "bloblang", "group_by_value", "group_by", "split", "archive"),
        *("unarchive", "compress", "decompress", "jmespath", "select_parts", "insert_part", "jq"),
    }
)
"""Processors that do nothing outside of the message."""


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """The cost of one segment.

    Attributes:
        segment: facts of stage 1.
        window_seconds: of CPU that stage 2 took; 0 without windows.
    """

    segment: SegmentFacts
    window_seconds: float


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The cost of a backfill.

    Attributes:
        messages: about how many messages are read.
        segments: how many segments there are.
        cpu_seconds: CPU time of all processes.
        seconds: how long it takes.
        disk_bytes: the most that is kept of packs at a time.
    """

    messages: int
    segments: int
    cpu_seconds: float
    seconds: float
    disk_bytes: int


def try_segment(job: BackfillJob, segment: Segment) -> TrialFacts:
    """Run the first segment through both stages, and measure that.

    Raises:
        StreamerError: it cannot be read.
    """
    facts = scan_segment(job, segment)
    if any(one.name not in _PURE_PROCESSORS for one in _list_processors(job.plan)):
        # Whatever they do outside must not be done twice.
        return TrialFacts(facts, facts.seconds)
    # The first time takes what a process loads and compiles once.
    facts = scan_segment(job, segment)
    if job.plan.window is None:
        return TrialFacts(facts, 0.0)
    number = segment.number
    task = WindowTask(_TRIAL_TASK, number, number, number + 1)
    run_window_task(job, task)
    done = run_window_task(job, task)
    job.work.results_path(_TRIAL_TASK).unlink()
    return TrialFacts(facts, done.seconds)


def _list_processors(plan: Plan) -> list[ParsedComponent]:
    inputs = leaf_inputs(plan.input, plan.resources)
    return [*plan.all_processors, *(made for one in inputs for made in one.processors)]


def estimate_cost(
    plan: Plan, trial: TrialFacts, messages: int, segments: int, processes: int
) -> CostEstimate:
    """Return the cost of all segments by that of one.

    Args:
        plan: the stream's plan.
        trial: what the one took.
        messages: about how many messages there are.
        segments: how many segments there are.
        processes: how many run at once.
    """
    share = messages / max(trial.segment.messages, 1)
    cpu = (trial.segment.seconds + trial.window_seconds) * share
    size = 0 if plan.window is None else int(trial.segment.size * share)
    return CostEstimate(messages, segments, cpu, cpu / max(processes, 1), size)
