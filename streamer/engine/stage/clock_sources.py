"""Sources that an event-time clock waits for (`clock_scope`): partitions of Kafka, or inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.connectors.merged_source import MergedSource, source_path_of
from streamer.engine.planner.kafka_inputs import is_range_source
from streamer.engine.stage.task_input import PieceInput, SourcePiece, TaskPlan
from streamer.plan import Plan
from streamer.sdk.input.replayable import ReplayableSource
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window import Window


def _scope_of(plan: Plan) -> str:
    """Return `partition` or `input`; empty where the clock waits for no source."""
    window = plan.window
    if isinstance(window, EventWindow) and window.time.waits_for_sources:
        return window.time.clock_scope
    return ""


def name_clock_source(task_plan: TaskPlan, piece: SourcePiece) -> str:
    """Return the name of the source that a piece is from; empty where none is waited for.

    Files and all else that is no log with partitions is one source for each input: its parts come
    one after the other.
    """
    scope = _scope_of(task_plan.plan)
    if scope == "partition" and _has_partitions(piece):
        return piece.partition
    return (piece.label or _name_input(task_plan.input_of(piece))) if scope else ""


def _has_partitions(piece: SourcePiece) -> bool:
    """Return whether a piece is from a log with partitions."""
    source: Any = piece.source
    for number in source_path_of(piece.content):
        if not isinstance(source, MergedSource):
            break
        source = list(source.sources.values())[number]
    return bool(getattr(source, "has_partitions", False))


def list_clock_sources(
    task_plan: TaskPlan, source: ReplayableSource, ends: Sequence[Offsets]
) -> tuple[str, ...]:
    """Return the names of all sources that are known, those that are silent too.

    Args:
        task_plan: of the stream.
        source: the input.
        ends: where the micro-batch ends in Kafka, for each of the inputs.
    """
    scope = _scope_of(task_plan.plan)
    if not scope:
        return ()
    if scope == "input":
        paths = task_plan.inputs
        inner = {path[:length] for path in paths for length in range(len(path))}
        leaves = [paths[path] for path in paths if path not in inner]
        return tuple(_name_input(one) for one in leaves if _takes_input(task_plan, one))
    numbers = count()
    return tuple(dict.fromkeys(_walk(task_plan, source, (), (), numbers, ends)))


def _takes_input(task_plan: TaskPlan, piece_input: PieceInput) -> bool:
    window = task_plan.plan.window
    return window is None or takes_label(window, piece_input.component.label)


def takes_label(window: Window, label: str) -> bool:
    """Return whether windows take the messages of the input of a label.

    A join takes those of its two sides alone.
    """
    join = window.join
    return join is None or label in (join.left, join.right)


def _walk(
    task_plan: TaskPlan,
    source: Any,
    path: tuple[int, ...],
    names: tuple[str, ...],
    numbers: Iterator[int],
    ends: Sequence[Offsets],
) -> Iterator[str]:
    if is_range_source(source):
        number = next(numbers)
        if not _takes_input(task_plan, task_plan.input_at(path)):
            return
        for topic, partitions in (ends[number] if number < len(ends) else {}).items():
            yield from (":".join((*names, f"{topic}/{partition}")) for partition in partitions)
    elif isinstance(source, MergedSource):
        for number, (name, child) in enumerate(source.sources.items()):
            way = (*path, number), (*names, name)
            yield from _walk(task_plan, child, *way, numbers, ends)
    elif _takes_input(task_plan, task_plan.input_at(path)):
        yield _name_input(task_plan.input_at(path))


def _name_input(piece_input: PieceInput) -> str:
    component = piece_input.component
    return component.label or component.path or "input"
