"""The conditions of windows that hold for messages (`begin_when`, `emit_when`), from stage 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.window.assign.pack_builder import DroppedMessages
from streamer.window.evaluate.queries import CompiledMapping
from streamer.window.pack.metadata_codec import BEGINS, EMITS, add_conditions


class MessageConditions:
    """Marks messages with the conditions of their windows that hold for them.

    One that fails, or gives anything but true, does not hold; the message is taken all the same.
    """

    def __init__(
        self,
        begin: CompiledMapping | None,
        emit: CompiledMapping | None,
        drops: DroppedMessages,
    ) -> None:
        """Take the conditions.

        Args:
            begin: `begin_when`; None without.
            emit: `emit_when`; None without.
            drops: logs why a condition gave no boolean.
        """
        pairs: Sequence[tuple[int, str, CompiledMapping | None]] = (
            (BEGINS, "begin_when", begin),
            (EMITS, "emit_when", emit),
        )
        self._queries = [(bit, name, query) for bit, name, query in pairs if query is not None]
        self._drops = drops

    def mark(self, meta: bytes, batch: Batch, index: int, ex: Execution) -> bytes:
        """Return a message's metadata with the conditions that hold for it.

        Args:
            meta: the metadata, as `encode_meta` writes it.
            batch: the batch of the message.
            index: its place there.
            ex: for the queries and for warnings.
        """
        bits = 0
        for bit, name, query in self._queries:
            try:
                result = query.query(batch, index, ex)
            except Exception as e:  # whatever it ran into: it does not hold
                self._drops.warn_condition_failed(name, str(e) or repr(e), ex)
                continue
            if result is True:
                bits |= bit
            elif result is not False:
                self._drops.warn_condition_failed(name, f"got {type(result).__name__}", ex)
        return add_conditions(meta, bits) if bits else meta

    def mark_all(
        self,
        metas: list[bytes],
        good: NDArray[np.bool_] | None,
        count: int,
        message_at: Callable[[int], Message],
        ex: Execution,
    ) -> list[bytes]:
        """Return the metadata of messages with the conditions that hold for each.

        Args:
            metas: by message, as `encode_meta` writes it; or the one that all share.
            good: by message, whether it is taken so far; None if all are.
            count: number of messages.
            message_at: gives a message.
            ex: for the queries and for warnings.
        """
        marked = list(metas) if len(metas) > 1 else metas * count
        taken = range(count) if good is None else np.flatnonzero(good).tolist()
        for index in taken:
            marked[index] = self.mark(marked[index], [message_at(index)], 0, ex)
        return marked
