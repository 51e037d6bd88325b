"""Which accumulator keeps which part of a mapping up to date."""

from __future__ import annotations

from streamer.bloblang.element import Question
from streamer.bloblang.parts import Part
from streamer.window.folds.chosen import Chosen
from streamer.window.folds.count import Count
from streamer.window.folds.counted import Counted
from streamer.window.folds.distinct import Distinct
from streamer.window.folds.numbers import Numbers
from streamer.window.folds.part import Accumulator
from streamer.window.folds.picked import Picked
from streamer.window.folds.ranked import Ranked
from streamer.window.folds.tested import Tested


def accumulator_of(part: Part) -> Accumulator:
    """Return what keeps a part up to date."""
    inner = _of_kind(part)
    if part.element is None or part.kind == "latest":
        return inner
    return Chosen(part, inner)


def _of_kind(part: Part) -> Accumulator:
    match part.kind:
        case "sum" | "min" | "max":
            return Numbers(part.kind, part.origin)
        case "distinct" | "unique":
            return Distinct(part.kind == "unique", part.origin)
        case "count":
            return Count()
        case "first" | "last" | "latest":
            return Picked(part.kind != "first")
        case "any" | "all":
            assert isinstance(part.question, Question)
            return Tested(part.kind == "any", part.origin, part.question)
        case "counts":
            return Counted(part.origin, part.question)
        case "top":
            return Ranked(part.number, part.origin, part.question)
        case "top distinct":
            return Ranked(part.number, part.origin, None, distinct=True)
