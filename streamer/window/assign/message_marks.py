"""Marks of messages for their windows: gaps of sessions, and conditions that hold (stage 1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.window.assign.message_conditions import MessageConditions
from streamer.window.assign.message_gaps import MessageGaps
from streamer.window.assign.pack_builder import DroppedMessages
from streamer.window.evaluate.queries import BufferMappings
from streamer.window.settings.int_codec import Ints


class MessageMarks:
    """Marks messages with gaps of sessions, and with conditions that hold for them."""

    def __init__(self, mappings: BufferMappings, drops: DroppedMessages) -> None:
        """Take the mappings, and what counts dropped messages."""
        self._gaps = None if mappings.gap is None else MessageGaps(mappings.gap, drops)
        self._conditions: MessageConditions | None = None
        if mappings.has_conditions:
            self._conditions = MessageConditions(mappings.begin_when, mappings.emit_when, drops)

    def mark(
        self, meta: bytes, batch: Batch, index: int, arrival: int, ex: Execution
    ) -> bytes | None:
        """Return a message's metadata with its marks; None if the message was dropped.

        Args:
            meta: the metadata, as `encode_meta` writes it.
            batch: the batch of the message.
            index: its place there.
            arrival: its arrival number.
            ex: for the mappings and for warnings.
        """
        if self._gaps is not None:
            marked = self._gaps.add_gap(meta, batch, index, arrival, ex)
            if marked is None:
                return None
            meta = marked
        return meta if self._conditions is None else self._conditions.mark(meta, batch, index, ex)

    def mark_all(
        self,
        metas: list[bytes],
        good: NDArray[np.bool_] | None,
        arrivals: Ints,
        message_at: Callable[[int], Message],
        ex: Execution,
    ) -> tuple[list[bytes], NDArray[np.bool_] | None]:
        """Return the metadata of messages with their marks, and which messages are left.

        Args:
            metas: by message, as `encode_meta` writes it; or the one that all share.
            good: by message, whether it is taken so far; None if all are.
            arrivals: by message.
            message_at: gives a message.
            ex: for the mappings and for warnings.
        """
        if self._gaps is not None:
            metas, good = self._gaps.add_gaps(metas, good, arrivals, message_at, ex)
        if self._conditions is not None:
            metas = self._conditions.mark_all(metas, good, len(arrivals), message_at, ex)
        return metas, good
