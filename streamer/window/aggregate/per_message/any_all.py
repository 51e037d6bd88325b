"""Whether any, or all, values pass a test: the message that decides, or fails, first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.bloblang.compiler.message_expression import INDEX_PLACEHOLDER
from streamer.bloblang.errors import RecordedError, TypeMismatch
from streamer.bloblang.message_expression import ElementQuery, ErrorValue
from streamer.window.aggregate.accumulator import InvalidValue, insert_index
from streamer.window.aggregate.per_message.message_accumulator import (
    InvalidState,
    make_invalid_state,
)


class AnyAllAccumulator:
    """Running aggregate of `any` and `all`: see `MessageAccumulator`.

    The state is the arrival of the message that decides, None, or `InvalidState`.
    `any` is decided by the first value that passes, `all` by the first that does not; what comes
    after it is not asked.
    """

    empty_state = None

    def __init__(self, decides: bool, origin: str, question: ElementQuery) -> None:
        """Take what decides, what error texts call the values, and the test."""
        self._decides = decides
        self._origin = origin
        self._question = question

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        answers = self._question.evaluate(values)
        if set(map(type, answers)) <= {bool}:
            return answers
        return [
            answer if type(answer) is bool else self._make_invalid(answer) for answer in answers
        ]

    def _make_invalid(self, answer: Any) -> InvalidValue:
        if type(answer) is not ErrorValue:
            text = f"{self._origin}: element {INDEX_PLACEHOLDER}: {TypeMismatch(answer, 'bool')}"
            return InvalidValue(0, 0, text)
        prefix = "" if answer.sealed else f"{self._origin}: "
        return InvalidValue(0, 0, f"{prefix}element {INDEX_PLACEHOLDER}: {answer.text}")

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if state is not None:
            return state
        if type(value) is InvalidValue:
            return make_invalid_state(value, arrival, place)
        return arrival if value == self._decides else None

    def merge(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if one is None or other is None:
            return other if one is None else one
        return min(one, other, key=_arrival_of)

    def result_of(self, state: Any) -> bool:
        """See `part.Running`."""
        if type(state) is InvalidState:
            raise RecordedError(insert_index(state.text, state.place), sealed=True)
        return self._decides if state is not None else not self._decides

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        return state

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        return InvalidState(*plain) if type(plain) is list else plain


def _arrival_of(state: Any) -> int:
    return state.arrival if type(state) is InvalidState else state
