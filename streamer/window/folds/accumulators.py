"""What keeps which part of a mapping up to date: over columns of messages, and one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, NamedTuple

from streamer.bloblang.element import Question
from streamer.bloblang.parts import Kind, Part
from streamer.window.folds.chosen import Chosen
from streamer.window.folds.count import Count
from streamer.window.folds.counted import Counted
from streamer.window.folds.distinct import Distinct
from streamer.window.folds.numbers import Numbers
from streamer.window.folds.part import Accumulator
from streamer.window.folds.picked import Picked
from streamer.window.folds.ranked import Ranked
from streamer.window.folds.running.chosen import RunningChosen
from streamer.window.folds.running.counted import RunningCounted
from streamer.window.folds.running.distinct import RunningDistinct
from streamer.window.folds.running.numbers import RunningExtreme, RunningSum
from streamer.window.folds.running.part import Running
from streamer.window.folds.running.picked import RunningCount, RunningPicked
from streamer.window.folds.running.ranked import RunningTop
from streamer.window.folds.running.tested import RunningTested
from streamer.window.folds.tested import Tested


class Keepers(NamedTuple):
    """What keeps a part up to date: of many groups at once, and message by message in one."""

    columns: Accumulator
    running: Running


def _extreme(kind: Literal["min", "max"], part: Part) -> Keepers:
    return Keepers(Numbers(kind, part.origin), RunningExtreme(kind, part.origin))


def _distinct(ordered: bool, part: Part) -> Keepers:
    return Keepers(Distinct(ordered, part.origin), RunningDistinct(ordered, part.origin))


def _picked(last: bool, part: Part) -> Keepers:
    return Keepers(Picked(last), RunningPicked(last))


def _tested(decides: bool, part: Part) -> Keepers:
    assert isinstance(part.question, Question)
    asked = decides, part.origin, part.question
    return Keepers(Tested(*asked), RunningTested(*asked))


def _counted(part: Part) -> Keepers:
    return Keepers(Counted(part.origin, part.question), RunningCounted(part.origin, part.question))


def _ranked(distinct: bool, part: Part) -> Keepers:
    asked = part.number, part.origin, None if distinct else part.question, distinct
    return Keepers(Ranked(*asked), RunningTop(*asked))


KEEPERS: Final[dict[Kind, Callable[[Part], Keepers]]] = {
    "count": lambda part: Keepers(Count(), RunningCount()),
    "sum": lambda part: Keepers(Numbers("sum", part.origin), RunningSum()),
    "min": partial(_extreme, "min"),
    "max": partial(_extreme, "max"),
    "distinct": partial(_distinct, False),
    "unique": partial(_distinct, True),
    "first": partial(_picked, False),
    "last": partial(_picked, True),
    "latest": partial(_picked, True),
    "any": partial(_tested, True),
    "all": partial(_tested, False),
    "counts": _counted,
    "top": partial(_ranked, False),
    "top distinct": partial(_ranked, True),
}


def accumulator_of(part: Part) -> Accumulator:
    """Return what keeps a part up to date in many groups at once."""
    inner = KEEPERS[part.kind](part).columns
    return Chosen(part, inner) if _chooses(part) else inner


def running_of(part: Part) -> Running:
    """Return what keeps a part up to date message by message."""
    inner = KEEPERS[part.kind](part).running
    return RunningChosen(part, inner) if _chooses(part) else inner


def _chooses(part: Part) -> bool:
    """Say whether some messages may bring nothing: what is asked of them is an expression."""
    return part.element is not None and part.kind != "latest"
