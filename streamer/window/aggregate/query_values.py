"""Evaluation of an aggregate's query, such as a key or a rank, for each of many values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang.compiler.message_expression import INDEX_PLACEHOLDER
from streamer.bloblang.errors import TypeMismatch
from streamer.bloblang.message_expression import ElementQuery, ErrorValue
from streamer.window.aggregate.accumulator import InvalidValue, split_invalid


def query_values(
    values: list[Any],
    question: ElementQuery | None,
    convert: Callable[[Any], Any],
    origin: str,
    neutral: Any,
    noun: str = "index",
) -> tuple[list[Any], list[InvalidValue]]:
    """Return the converted result of a query for each value; and the invalid ones of these.

    Args:
        values: the values.
        question: the query; None to take the values themselves as its results.
        convert: converts a result, or raises `TypeMismatch`.
        origin: what error texts call the values.
        neutral: stands for the result of an invalid value.
        noun: what error texts call the place of one.
    """
    answers = values if question is None else question.evaluate(values)
    try:
        return list(map(convert, answers)), []
    except TypeMismatch:
        return split_invalid(
            [_convert_one(each, convert, origin, noun) for each in answers], neutral
        )


def _convert_one(answer: Any, convert: Callable[[Any], Any], origin: str, noun: str) -> Any:
    try:
        return convert(answer)
    except TypeMismatch as e:
        failed = type(answer) is ErrorValue
        prefix = "" if failed and answer.sealed else f"{origin}: "
        text = answer.text if failed else str(e)
        return InvalidValue(0, 0, f"{prefix}{noun} {INDEX_PLACEHOLDER}: {text}")
