"""Times of a micro-batch: its stages, and the components that were at work in them.

From these follows the back pressure: a micro-batch is taken when the one before is delivered, so
whatever takes long in one holds all that stands before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import orjson

from streamer.core.execution import Execution

_INPUT: Final = "root.input"


class TaskTimes(NamedTuple):
    """The time of a task.

    Attributes:
        owner: the path of the input or of the buffer that the task begins with.
        total: all of it, ns.
        parts: the time of processors and outputs in it, by path, ns.
    """

    owner: str
    total: int
    parts: Mapping[str, int]

    def to_json(self) -> bytes:
        """Return the times as JSON."""
        return orjson.dumps([*self])

    @classmethod
    def from_json(cls, body: bytes) -> TaskTimes:
        """Read the times from JSON."""
        return cls(*orjson.loads(body))


def task_times(owner: str, took: int, ex: Execution) -> TaskTimes:
    """Return the times of a task that has ended.

    Args:
        owner: the path of the component that it begins with.
        took: all of it, ns.
        ex: the run of its components.
    """
    parts = {
        path: tally.elapsed
        for (kind, _, path), tally in ex.component_stats.items()
        if kind == "processor" and tally.elapsed
    }
    # Processors inside of others are a part of their time.
    outer = {path: time for path, time in parts.items() if not _has_ancestor(path, parts)}
    return TaskTimes(owner, took, outer | ex.send_times)


def _has_ancestor(path: str, paths: Mapping[str, int]) -> bool:
    while path := path.rpartition(".")[0]:
        if path in paths:
            return True
    return False


class NodeTime(NamedTuple):
    """The time of a component in a micro-batch, seconds, as a machine of the stream's own takes.

    Attributes:
        busy: in which it was at work.
        waiting: in which it waited to try again what has failed.
    """

    busy: float = 0.0
    waiting: float = 0.0


@dataclass(slots=True)
class BatchTimes:
    """The times of a micro-batch, as they are reported.

    Attributes:
        tasks: of the tasks.
        writing: how long the driver wrote, by the path of the output, s.
        waiting: how long it waited between tries, by the path of the output, s.
    """

    tasks: list[TaskTimes] = field(default_factory=list)
    writing: Counter[str] = field(default_factory=Counter)
    waiting: Counter[str] = field(default_factory=Counter)

    def add_seconds(self, path: str, writing: float, waiting: float) -> None:
        """Add what the driver did for an output, s."""
        self.writing[path] += writing  # type: ignore[assignment]
        self.waiting[path] += waiting  # type: ignore[assignment]

    def stage_seconds(self, parallel_tasks: int) -> tuple[float, float]:
        """Return how long stage 1 and stage 2 took, s.

        Args:
            parallel_tasks: how many tasks run at once.
        """
        return (
            _seconds_side_by_side(self._tasks_of(is_input=True), parallel_tasks),
            _seconds_side_by_side(self._tasks_of(is_input=False), parallel_tasks),
        )

    def node_times(self, nodes: Iterable[str], parallel_tasks: int) -> dict[str, NodeTime]:
        """Return the times of components.

        Args:
            nodes: their paths; what is inside of one counts for it.
            parallel_tasks: how many tasks run at once.
        """
        nodes = frozenset(nodes)
        busy: Counter[str] = Counter()
        for is_input in (True, False):
            tasks = self._tasks_of(is_input=is_input)
            total = sum(task.total for task in tasks)
            if not total:
                continue
            scale = _seconds_side_by_side(tasks, parallel_tasks) / total
            for owner, took, parts in tasks:
                for path, part in parts.items():
                    busy[_node_of(path, nodes)] += part * scale  # type: ignore[assignment]
                rest = max(took - sum(parts.values()), 0)
                busy[_node_of(owner, nodes)] += rest * scale  # type: ignore[assignment]
        waiting: Counter[str] = Counter()
        for path, seconds in self.writing.items():
            busy[_node_of(path, nodes)] += seconds
        for path, seconds in self.waiting.items():
            waiting[_node_of(path, nodes)] += seconds
        return {
            path: NodeTime(float(busy[path]), float(waiting[path])) for path in {*busy, *waiting}
        }

    def _tasks_of(self, *, is_input: bool) -> list[TaskTimes]:
        return [task for task in self.tasks if (task.owner == _INPUT) is is_input]


def _seconds_side_by_side(tasks: list[TaskTimes], parallel_tasks: int) -> float:
    """Return how long tasks take of which only so many can run at once, s."""
    total = sum(task.total for task in tasks)
    longest = max((task.total for task in tasks), default=0)
    return max(longest, total / max(parallel_tasks, 1)) / 1e9


def _node_of(path: str, nodes: frozenset[str]) -> str:
    """Return the node that a component is, or is inside of; its own path without one."""
    node = path
    while node not in nodes:
        node, _, last = node.rpartition(".")
        if not last or not node:
            return path
    return node
