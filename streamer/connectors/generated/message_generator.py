"""Makes messages out of nothing, by their numbers, for the `generate` input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from streamer.bloblang import compile_mapping
from streamer.core.errors import MessageError
from streamer.core.message import Batch, Execution, Message
from streamer.sdk.input.replayable import Chunk, Offset

UNPACED_MESSAGES: Final = 100_000
"""Messages a micro-batch makes when there is no interval."""


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
        """Take the mapping's text, and the run that hears of messages that fail."""
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


class RepeatableGenerator:
    """Base of sources of messages that can be made again: they keep nothing."""

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
