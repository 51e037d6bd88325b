"""Messages by the chunk: thousands are looked at together, and fewer around one that fails.

What is told of a chunk at once must be what would be told of each message alone: so a chunk with a
message that makes a mapping fail is taken again in smaller ones, and the few around it one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import numpy as np

from streamer.documents import payloads
from streamer.errors import StreamerError
from streamer.message import Batch, Execution, Message
from streamer.window.ints import Ints
from streamer.window.metadata import encode_meta
from streamer.window.pack import lengths_of
from streamer.window.row import Row

CHUNK: Final = 4096
_SMALL: Final = 64

Seen = TypeVar("Seen")
"""What was seen of the messages of a chunk."""

Origin = Callable[[int], Message]
"""Gives a message of a chunk, by its place."""


class Chunks(ABC, Generic[Seen]):
    """Takes the messages of one task, of one micro-batch."""

    def __init__(self) -> None:
        self._t: int | None = None

    def add_raws(
        self,
        raws: list[bytes],
        meta: Mapping[str, Any],
        arrival_start: int,
        t: int,
        ex: Execution,
    ) -> None:
        """Take messages that share their metadata, and of which each is a batch of its own.

        Args:
            raws: payloads, in order of arrival.
            meta: the metadata of all of them.
            arrival_start: the arrival number of the first; the others follow.
            t: the micro-batch's time, ns, which is what `ex.now()` gives.
            ex: for the mappings and for warnings.
        """
        self._begin(t)
        encoded = encode_meta(meta)
        for start in range(0, len(raws), CHUNK):
            chunk = raws[start : start + CHUNK]
            self._add_chunk(chunk, meta, encoded, arrival_start + start, ex)

    def add_messages(
        self, messages: list[Message], arrival_start: int, t: int, ex: Execution
    ) -> None:
        """Take messages of any kind; those that are marked as failed will pass by the windows.

        Args:
            messages: one batch, which is what the mappings see.
            arrival_start: the arrival number of the first; the others follow.
            t: the micro-batch's time, ns, which is what `ex.now()` gives.
            ex: for the mappings and for warnings.
        """
        self._begin(t)
        if len(messages) > 1:
            for start in range(0, len(messages), CHUNK):
                chunk = messages[start : start + CHUNK]
                self._add_together(chunk, messages, start, arrival_start, ex)
            return
        for index, message in enumerate(messages):
            self._add_message(messages, index, message, arrival_start + index, ex)

    @abstractmethod
    def ready(self) -> list[Row]:
        """Take the rows that are finished already, so that they need not be held any longer."""

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """Finish: give all rows that are left, and the counters."""

    @property
    @abstractmethod
    def _ways(self) -> Sequence[Any]:
        """How many messages can be looked at together, the fastest way first; there may be none."""

    @abstractmethod
    def _make_room(self, size: int) -> None:
        """Finish rows if need be; to be called before messages are looked at."""

    @abstractmethod
    def _of_raws(self, way: Any, raws: list[bytes]) -> Seen:
        """Look at payloads; raise whatever one of them makes a mapping raise."""

    @abstractmethod
    def _of_messages(self, way: Any, raws: list[bytes], messages: list[Message]) -> Seen:
        """Look at messages, whose payloads are at hand."""

    @abstractmethod
    def _take(
        self,
        raws: list[bytes],
        lengths: Ints,
        seen: Seen,
        arrivals: Ints,
        metas: list[bytes],
        origin: Origin,
        ex: Execution,
    ) -> None:
        """Take messages that were looked at.

        Args:
            raws: payloads.
            lengths: by message, of its payload.
            seen: what was seen of them.
            arrivals: by message.
            metas: by message, as `encode_meta` writes it; or the one that all share.
            origin: gives a message, for those that are dropped.
            ex: for warnings.
        """

    @abstractmethod
    def _add_message(
        self, batch: Batch, index: int, message: Message, arrival: int, ex: Execution
    ) -> None:
        """Take one message of a batch, or tell why not."""

    def _begin(self, t: int) -> None:
        if self._t is not None and self._t != t:
            raise StreamerError(
                f"a packer was given messages of two micro-batches, at {self._t} and {t} ns: this "
                "is a bug in the program"
            )
        self._t = t

    def _add_chunk(
        self, raws: list[bytes], meta: Mapping[str, Any], encoded: bytes, start: int, ex: Execution
    ) -> None:
        lengths = lengths_of(raws)
        self._make_room(int(lengths.sum()))
        for way in self._ways:
            try:
                seen = self._of_raws(way, raws)
            except Exception:  # whatever one message did: it is found below, and its reason told
                continue
            arrivals = np.arange(start, start + len(raws))
            self._take(
                raws, lengths, seen, arrivals, [encoded], lambda i: Message(raws[i], meta), ex
            )
            return
        if self._ways and len(raws) > _SMALL:
            step = -(-len(raws) // 8)
            for i in range(0, len(raws), step):
                self._add_chunk(raws[i : i + step], meta, encoded, start + i, ex)
            return
        for i, raw in enumerate(raws):
            message = Message(raw, meta)
            self._add_message([message], 0, message, start + i, ex)

    def _add_together(
        self, chunk: list[Message], batch: Batch, start: int, arrival_start: int, ex: Execution
    ) -> None:
        if self._take_together(chunk, arrival_start + start, ex):
            return
        if self._ways and len(chunk) > _SMALL:
            for i in range(0, len(chunk), _SMALL):
                self._add_together(chunk[i : i + _SMALL], batch, start + i, arrival_start, ex)
            return
        for i, message in enumerate(chunk, start):
            self._add_message(batch, i, message, arrival_start + i, ex)

    def _take_together(self, chunk: list[Message], first: int, ex: Execution) -> bool:
        """Take messages if they can be looked at together."""
        if any(message.error is not None for message in chunk):
            return False
        for way in self._ways:
            try:
                raws = payloads(chunk)
                lengths = lengths_of(raws)
                self._make_room(int(lengths.sum()))
                seen = self._of_messages(way, raws, chunk)
                metas = [encode_meta(message.meta) for message in chunk]
            except Exception:  # it is met again, and told, message by message
                continue
            arrivals = np.arange(first, first + len(chunk))
            self._take(raws, lengths, seen, arrivals, metas, chunk.__getitem__, ex)
            return True
        return False
