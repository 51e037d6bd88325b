"""Time that a micro-batch took in the stream's own processors and outputs.

Each task reports its own; the driver adds them up, and the process that plans micro-batches
gets it. By it alone windows expire: what a micro-batch waits for besides is no back pressure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import orjson

from streamer.core.execution import Execution
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import ParsedComponent

BEFORE_WINDOWS: Final = 1
AFTER_WINDOWS: Final = 2


class TaskWork(NamedTuple):
    """The time of one task.

    Attributes:
        stage: `BEFORE_WINDOWS` or `AFTER_WINDOWS`.
        processors: ns.
        outputs: ns.
    """

    stage: int
    processors: int
    outputs: int

    def to_json(self) -> bytes:
        """Return the times as JSON."""
        return orjson.dumps([*self])

    @classmethod
    def from_json(cls, body: bytes) -> TaskWork:
        """Read the times from JSON."""
        return cls(*orjson.loads(body))


class BatchWork(NamedTuple):
    """The part of a micro-batch that is the stream's own time.

    Attributes:
        time: the micro-batch's, ns.
        began: when its delivery began, by the machine's steady clock, ns.
        processors: how long the processors of its tasks took, ns.
        sending: how long the outputs of its tasks took, ns.
        delivery: how long the driver took to write, waits between its tries included, ns.
    """

    time: int
    began: int
    processors: int
    sending: int
    delivery: int

    @property
    def total(self) -> int:
        """The sum of all parts, ns."""
        return self.processors + self.sending + self.delivery


def split_work(work: int, processors: Iterable[ParsedComponent], ex: Execution) -> TaskWork:
    """Return what a task took for itself after the windows, of which it knows the whole.

    Args:
        work: all of it, ns.
        processors: those of the pipeline, each of which has counted its part.
        ex: the run in which they did.
    """
    tallies = (ex.component_stats.get(ComponentRef(processor).key) for processor in processors)
    took = min(sum(tally.elapsed for tally in tallies if tally is not None), work)
    return TaskWork(AFTER_WINDOWS, took, work - took)


def combine_tasks(tasks: Sequence[TaskWork], parallel_tasks: int) -> tuple[int, int]:
    """Return how long the processors and the outputs of all tasks took side by side, ns.

    As long as a machine of the stream's own had taken: the longest task, or all of them in turn
    where only so many can run `at_once`. Who waited for a core was not at work.
    """
    processors = outputs = 0
    for stage in (BEFORE_WINDOWS, AFTER_WINDOWS):
        some = [task for task in tasks if task.stage == stage]
        if not some:
            continue
        took = sum(task.processors for task in some), sum(task.outputs for task in some)
        longest = max(some, key=lambda task: task.processors + task.outputs)
        if sum(took) // parallel_tasks > longest.processors + longest.outputs:
            processors, outputs = (
                processors + took[0] // parallel_tasks,
                outputs + took[1] // parallel_tasks,
            )
        else:
            processors, outputs = processors + longest.processors, outputs + longest.outputs
    return processors, outputs
