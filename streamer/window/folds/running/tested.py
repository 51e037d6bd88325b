"""Whether any, or all, values pass a test: the message that decides, or fails, first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.bloblang.compiler.element import AT
from streamer.bloblang.element import Failed, Question
from streamer.bloblang.errors import ToldError, TypeMismatch
from streamer.window.folds.part import Spoiler, placed
from streamer.window.folds.running.part import Spoilt, spoilt


class RunningTested:
    """See `part.Running`. The state is the arrival of the message that decides, None, or `Spoilt`.

    `any` is decided by the first value that passes, `all` by the first that does not; what comes
    after it is not asked.
    """

    empty = None

    def __init__(self, decides: bool, origin: str, question: Question) -> None:
        """Take what decides, what error texts call the values, and the test."""
        self._decides = decides
        self._origin = origin
        self._question = question

    def prepared(self, values: list[Any]) -> Sequence[Any]:
        """See `part.Running`."""
        answers = self._question.answers(values)
        if set(map(type, answers)) <= {bool}:
            return answers
        return [answer if type(answer) is bool else self._fault(answer) for answer in answers]

    def _fault(self, answer: Any) -> Spoiler:
        if type(answer) is not Failed:
            text = f"{self._origin}: element {AT}: {TypeMismatch(answer, 'bool')}"
            return Spoiler(0, 0, text)
        prefix = "" if answer.sealed else f"{self._origin}: "
        return Spoiler(0, 0, f"{prefix}element {AT}: {answer.text}")

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """See `part.Running`."""
        if state is not None:
            return state
        if type(value) is Spoiler:
            return spoilt(value, arrival, place)
        return arrival if value == self._decides else None

    def joined(self, one: Any, other: Any) -> Any:
        """See `part.Running`."""
        if one is None or other is None:
            return other if one is None else one
        return min(one, other, key=_arrival)

    def value(self, state: Any) -> bool:
        """See `part.Running`."""
        if type(state) is Spoilt:
            raise ToldError(placed(state.text, state.place), sealed=True)
        return self._decides if state is not None else not self._decides

    def dump(self, state: Any) -> Any:
        """See `part.Running`."""
        return state

    def load(self, plain: Any) -> Any:
        """See `part.Running`."""
        return Spoilt(*plain) if type(plain) is list else plain


def _arrival(state: Any) -> int:
    return state.arrival if type(state) is Spoilt else state
