"""What a method's query gives for each value, brought to what the method takes; or why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang.compiler.message_expression import INDEX_PLACEHOLDER
from streamer.bloblang.errors import TypeMismatch
from streamer.bloblang.message_expression import ElementQuery, ErrorValue
from streamer.window.aggregate.accumulator import InvalidValue


def query_values(
    values: list[Any],
    question: ElementQuery | None,
    of: Callable[[Any], Any],
    origin: str,
    neutral: Any,
) -> tuple[list[Any], list[InvalidValue]]:
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
    answers = values if question is None else question.evaluate(values)
    try:
        return list(map(of, answers)), []
    except TypeMismatch:
        results, invalid = [], []
        for place, answer in enumerate(answers):
            try:
                results.append(of(answer))
            except TypeMismatch as e:
                results.append(neutral)
                invalid.append(InvalidValue(place, 0, _error_text(answer, e, origin)))
        return results, invalid


def _error_text(answer: Any, error: TypeMismatch, origin: str) -> str:
    if type(answer) is not ErrorValue:
        return f"{origin}: index {INDEX_PLACEHOLDER}: {error}"
    prefix = "" if answer.sealed else f"{origin}: "
    return f"{prefix}index {INDEX_PLACEHOLDER}: {answer.text}"
