"""Makes messages out of nothing, by their numbers, for the `generate` input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from streamer.bloblang import compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.input.replayable import Chunk, Limit, Offset

UNPACED_MESSAGES: Final = 100_000
"""Messages a micro-batch makes when there is no interval."""

MAX_MICRO_BATCH_BYTES: Final = 64 << 20
"""Bytes that a micro-batch makes at most, if its messages are about as long as some of them.

Those of a stream without windows all come to the driver, which has them until its outputs have.
"""

_UNMEASURED_MESSAGES: Final = 10
"""So many messages are made without a look at their size."""

_SAMPLES: Final = 8


class _OffsetCounters(dict[str, int]):
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


class MessageGenerator:
    """Makes messages with a mapping, which sees a moment as `now()` and a number in `count()`."""

    def __init__(self, mapping: str, ex: Execution) -> None:
        """Take the mapping's text, and the execution in which failures are logged and counted."""
        self._mapping = compile_mapping(mapping)
        self._batch_time = 0
        # Each message's moment is known; the worker's clock does not matter.
        self._execution = Execution(lambda: self._batch_time, ex.log, ex.count)

    def make_batch(self, numbers: range, batch_time: int) -> Batch:
        """Return the messages of these numbers, but for those that are deleted or fail.

        Args:
            numbers: the messages' numbers, from 0.
            batch_time: the time of all of them, Unix ns.
        """
        self._batch_time, ex = batch_time, self._execution
        batch: Batch = []
        for number in numbers:
            ex.counters = _OffsetCounters(number)
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
    """Count of messages that come to a number of bytes, by a look at some of them.

    A mapping says nothing of the size of what it makes, and where an output was blocked for long
    very many messages are due at once.
    """

    def __init__(self, mapping: str) -> None:
        """Take the mapping's text."""
        self._mapping = mapping
        self._measured = -1, 0

    def count_fitting(self, numbers: range, moment: int, limit: Limit) -> int:
        """Return about how many of these messages a micro-batch may make: one at least.

        Args:
            numbers: the messages' numbers.
            moment: a time at which they are made, Unix ns.
            limit: of the micro-batch.
        """
        if len(numbers) <= _UNMEASURED_MESSAGES:
            return max(len(numbers), 1)
        # Where more of them have become due by now, nobody waits for the mapping again.
        if self._measured[0] != numbers.start:
            self._measured = numbers.start, self._measure_largest(numbers, moment)
        fitting = min(limit.size, MAX_MICRO_BATCH_BYTES) // max(self._measured[1], 1)
        return max(min(fitting, limit.messages), 1)

    def _measure_largest(self, numbers: range, moment: int) -> int:
        """Return the bytes of the largest of some messages."""
        generator = MessageGenerator(self._mapping, Execution(lambda: moment))
        some = numbers[:: -(-len(numbers) // _SAMPLES)]
        # One by one: there may not be room for all of them.
        batches = (generator.make_batch(range(number, number + 1), moment) for number in some)
        return max((len(message.raw) for batch in batches for message in batch), default=0)


class RepeatableGenerator:
    """Base of sources of messages that can be made again: they keep nothing."""

    def watch(self, wake: Callable[[], None]) -> None:
        """Do nothing: the clock brings the messages."""

    def partition_of(self, piece: Any) -> str:
        """There is but one."""
        return ""

    def on_committed(self, end: Offset) -> None:
        """Nothing is held."""

    def on_finished(self) -> None:
        """Nothing is held."""


def group_into_chunks(batches: Iterable[Batch]) -> Iterator[Chunk]:
    """Give batches a thousand at a time, without empty ones."""
    chunk: list[Batch] = []
    for batch in batches:
        if batch:
            chunk.append(batch)
        if len(chunk) >= 1000:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
