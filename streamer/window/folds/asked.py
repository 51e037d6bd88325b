"""What a method's query gives for each value, brought to what the method takes; or why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang.compiler.element import AT
from streamer.bloblang.element import Failed, Question
from streamer.bloblang.errors import TypeMismatch
from streamer.window.folds.part import Spoiler


def asked(
    values: list[Any],
    question: Question | None,
    of: Callable[[Any], Any],
    origin: str,
    neutral: Any,
) -> tuple[list[Any], list[Spoiler]]:
    """Return what is made of each value.

    Args:
        values: the values.
        question: asked of each before; None to take them as they are.
        of: makes of an answer what is wanted, or raises `TypeMismatch`.
        origin: what error texts call the values.
        neutral: stands where there is nothing.

    Returns:
        One thing for each value, and the values that spoil it all. Their texts have `AT` for the
        index.
    """
    answers = values if question is None else question.answers(values)
    try:
        return list(map(of, answers)), []
    except TypeMismatch:
        found, bad = [], []
        for place, answer in enumerate(answers):
            try:
                found.append(of(answer))
            except TypeMismatch as e:
                found.append(neutral)
                bad.append(Spoiler(place, 0, _told(answer, e, origin)))
        return found, bad


def _told(answer: Any, error: TypeMismatch, origin: str) -> str:
    if type(answer) is not Failed:
        return f"{origin}: index {AT}: {error}"
    prefix = "" if answer.sealed else f"{origin}: "
    return f"{prefix}index {AT}: {answer.text}"
