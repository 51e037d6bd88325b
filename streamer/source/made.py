"""Makes messages out of nothing, by their numbers, for the `generate` input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from streamer.bloblang import compile_mapping
from streamer.errors import MessageError
from streamer.message import Batch, Execution, Message
from streamer.source.replayable import Chunk, Limit, Offset

UNPACED: Final = 100_000
"""Messages a micro-batch makes when there is no interval."""

MAX_SIZE: Final = 64 << 20
"""Bytes that a micro-batch makes at most, if its messages are about as long as some of them.

Those of a stream without windows all come to the driver, which has them until its outputs have.
"""

_FEW: Final = 10
"""So many messages are made without a look at their size."""

_SAMPLES: Final = 8


class _CountFrom(dict[str, int]):
    """Counters that begin at a message's number instead of zero, whatever their names."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def __missing__(self, name: str) -> int:
        return self._number

    def get(self, name: str, default: object = None) -> int:
        """Return the counter, or the message's number."""
        return self[name]

    def __contains__(self, name: object) -> bool:
        return True


class Maker:
    """Makes messages with a mapping, which sees a moment as `now()` and a number in `count()`."""

    def __init__(self, mapping: str, ex: Execution) -> None:
        """Take the mapping's text, and the run that hears of messages that fail."""
        self._mapping = compile_mapping(mapping)
        self._moment = 0
        # Each message's moment is known; the worker's clock does not matter.
        self._execution = Execution(lambda: self._moment, ex.log, ex.count)

    def batch(self, numbers: range, moment: int) -> Batch:
        """Return the messages of these numbers, but for those that are deleted or fail.

        Args:
            numbers: the messages' numbers, from 0.
            moment: the time of all of them, Unix ns.
        """
        self._moment, ex = moment, self._execution
        batch: Batch = []
        for number in numbers:
            ex.counters = _CountFrom(number)
            try:
                message = self._mapping.apply([Message(b"")], 0, ex)
            except MessageError as e:
                ex.log("ERROR", f"Failed to generate message: {e}", {"path": "input.generate"})
                ex.count("input_error")
                continue
            if message is not None:
                batch.append(message)
        return batch


class SizeEstimate:
    """How many messages come to so many bytes, by a look at some of them.

    A mapping says nothing of the size of what it makes, and where an output was blocked for long
    very many messages are due at once.
    """

    def __init__(self, mapping: str) -> None:
        """Take the mapping's text."""
        self._mapping = mapping
        self._known = -1, 0

    def fitting(self, numbers: range, moment: int, limit: Limit) -> int:
        """Return about how many of these messages a micro-batch may make: one at least.

        Args:
            numbers: the messages' numbers.
            moment: a time at which they are made, Unix ns.
            limit: of the micro-batch.
        """
        if len(numbers) <= _FEW:
            return max(len(numbers), 1)
        # Where more of them have become due by now, nobody waits for the mapping again.
        if self._known[0] != numbers.start:
            self._known = numbers.start, self._largest(numbers, moment)
        fitting = min(limit.size, MAX_SIZE) // max(self._known[1], 1)
        return max(min(fitting, limit.messages), 1)

    def _largest(self, numbers: range, moment: int) -> int:
        """Return the bytes of the largest of some messages."""
        maker = Maker(self._mapping, Execution(lambda: moment))
        some = numbers[:: -(-len(numbers) // _SAMPLES)]
        # One by one: there may not be room for all of them.
        made = (maker.batch(range(number, number + 1), moment) for number in some)
        return max((len(message.raw) for batch in made for message in batch), default=0)


class MadeAgain:
    """What sources of messages that can be made again have in common: they hold nothing."""

    def partition(self, piece: Any) -> str:
        """There is but one."""
        return ""

    def committed(self, end: Offset) -> None:
        """Nothing is held."""

    def finished(self) -> None:
        """Nothing is held."""


def in_chunks(batches: Iterable[Batch]) -> Iterator[Chunk]:
    """Give batches a thousand at a time, without empty ones."""
    made: list[Batch] = []
    for batch in batches:
        if batch:
            made.append(batch)
        if len(made) >= 1000:
            yield made
            made = []
    if made:
        yield made
