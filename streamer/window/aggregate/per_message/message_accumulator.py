"""What keeps one part up to date in one window: the protocol, and what has no value."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from streamer.window.aggregate.accumulator import InvalidValue
from streamer.window.aggregate.value_codec import read_values, write_values

_PLAIN_TYPES: Final = frozenset((str, bool, type(None)))
_MIN_INT64, _INT64_LIMIT = -(1 << 63), 1 << 63


class InvalidState(NamedTuple):
    """The state of a part that a message has spoilt.

    Attributes:
        place: the message's index among those that brought a value; where two sessions have
            joined, among those of its own.
        arrival: its arrival number.
        text: what is wrong with it.
    """

    place: int
    arrival: int
    text: str


class MessageAccumulator(Protocol):
    """Keeps one part up to date.

    A state is a value that stays as it is; `add` gives another one. Only the newest state may be
    added to.
    """

    @property
    def empty_state(self) -> Any:
        """The state without any message."""

    def prepare(self, values: list[Any]) -> Sequence[Any]:
        """Return what `add` takes of each message, from what its field or expression gives."""

    def add(self, state: Any, value: Any, arrival: int, place: int) -> Any:
        """Return the state with one more message.

        Args:
            state: the state so far.
            value: what `prepare` gave for the message; a `InvalidValue` when it spoils the part.
            arrival: its arrival number, larger than those before.
            place: how many messages there were before.
        """

    def merge(self, one: Any, other: Any) -> Any:
        """Return the state of the messages of two, which may have arrived in turns."""

    def result_of(self, state: Any) -> Any:
        """Return what the part comes to.

        Raises:
            UnplacedError: the part fails, in Benthos's words.
        """

    def dump(self, state: Any) -> Any:
        """Return a state as plain values."""

    def load(self, plain: Any) -> Any:
        """Return the state that was dumped."""


class RowSpan(NamedTuple):
    """Some messages that follow one another among others.

    Attributes:
        first: the first of them.
        last: the one after the last.
        arrivals: the arrival numbers, of the others too.
    """

    first: int
    last: int
    arrivals: Sequence[int]


@runtime_checkable
class BulkMessageAccumulator(Protocol):
    """A part that can also take some messages at once, which saves time on each."""

    def add_all(self, state: Any, values: Sequence[Any], span: RowSpan, place: int) -> Any:
        """Return the state with some more messages; see `Running.add`.

        Args:
            state: the state so far.
            values: what `prepare` gave, for others too.
            span: which messages are meant.
            place: how many messages there were before.
        """


def bulk_adder_of(running: MessageAccumulator) -> Callable[[Any, Sequence[Any], RowSpan, int], Any]:
    """Return what adds some messages at once."""
    if isinstance(running, BulkMessageAccumulator):
        return running.add_all
    add = running.add

    def add_all(state: Any, values: Sequence[Any], span: RowSpan, place: int) -> Any:
        first, last, arrivals = span
        for at in range(first, last):
            state = add(state, values[at], arrivals[at], place + at - first)
        return state

    return add_all


def make_invalid_state(invalid: InvalidValue, arrival: int, place: int) -> InvalidState:
    """Return the state that a message leaves which spoils the part."""
    return InvalidState(place, arrival, invalid.text)


def select_earlier(one: InvalidState, other: Any) -> InvalidState:
    """Return the state of two that are joined, one of which is spoilt, by the first that did it."""
    return other if type(other) is InvalidState and other.arrival < one.arrival else one


def dump_value(value: Any) -> Any:
    """Return any value of a message as a plain one: a list of one text where it is none itself."""
    kind = type(value)
    if kind in _PLAIN_TYPES or (kind is int and _MIN_INT64 <= value < _INT64_LIMIT):
        return value
    if kind is float and value - value == 0:
        return value
    return [base64.b64encode(write_values([value])).decode()]


def load_value(plain: Any) -> Any:
    """Return the value that was dumped."""
    if type(plain) is list:
        return read_values(base64.b64decode(plain[0]))[0]
    return plain
