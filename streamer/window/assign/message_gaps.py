"""The gaps that messages bring to their sessions (`gap_mapping`), found in stage 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamer.core.durations import format_duration, parse_duration
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.timestamps import parse_event_time
from streamer.core.value import DELETED, NOTHING, Number
from streamer.window.assign.pack_builder import DroppedMessages
from streamer.window.evaluate.queries import CompiledMapping
from streamer.window.pack.metadata_codec import add_gap
from streamer.window.settings.int_codec import Ints

GAP_REASON: Final = "gap"
"""The reason by which messages without a gap are counted."""
_NO_GAP_TEXT: Final = "its gap_mapping gave no gap"


class MessageGaps:
    """Marks messages with their gaps, and drops those of which the mapping gives none."""

    def __init__(self, mapping: CompiledMapping, drops: DroppedMessages) -> None:
        """Take the mapping, and what counts dropped messages."""
        self._mapping = mapping
        self._drops = drops

    def add_gap(
        self, meta: bytes, batch: Batch, index: int, arrival: int, ex: Execution
    ) -> bytes | None:
        """Return a message's metadata with its gap; None if the message was dropped.

        Args:
            meta: the metadata, as `encode_meta` writes it.
            batch: the batch of the message.
            index: its place there.
            arrival: its arrival number.
            ex: for the mapping and for warnings.
        """
        try:
            gap = parse_gap(self._mapping.query(batch, index, ex))
        except Exception as e:  # the message alone is dropped, whatever its mapping ran into
            why, message = str(e) or repr(e), batch[index]
            self._drops.add_dropped(GAP_REASON, _NO_GAP_TEXT, why, message, arrival, ex)
            return None
        return meta if gap is None else add_gap(meta, gap)

    def add_gaps(
        self,
        metas: list[bytes],
        good: NDArray[np.bool_] | None,
        arrivals: Ints,
        message_at: Callable[[int], Message],
        ex: Execution,
    ) -> tuple[list[bytes], NDArray[np.bool_] | None]:
        """Return the metadata of messages with their gaps, and which messages are left.

        Args:
            metas: by message, as `encode_meta` writes it; or the one that all share.
            good: by message, whether it is taken so far; None if all are.
            arrivals: by message.
            message_at: gives a message.
            ex: for the mapping and for warnings.
        """
        count = len(arrivals)
        marked = list(metas) if len(metas) > 1 else metas * count
        left = np.ones(count, np.bool_) if good is None else good.copy()
        for index in np.flatnonzero(left).tolist():
            meta = self.add_gap(marked[index], [message_at(index)], 0, int(arrivals[index]), ex)
            if meta is None:
                left[index] = False
            else:
                marked[index] = meta
        return marked, None if left.all() else left


def parse_gap(value: Any) -> int | None:
    """Return what a gap_mapping gave as a duration, ns; None for null.

    Args:
        value: a text such as `30s`, or a number of seconds.

    Raises:
        ValueError: it is neither, or not longer than nothing.
    """
    if value is None:
        return None
    if value is DELETED or value is NOTHING:
        raise ValueError("it was deleted")
    if isinstance(value, str):
        gap = parse_duration(value)
    elif isinstance(value, int | float | Number) and not isinstance(value, bool):
        gap = parse_event_time(value)
    else:
        raise ValueError("expected a duration such as 30s, or a number of seconds")
    if gap <= 0:
        raise ValueError(f"it is {format_duration(gap)}; expected one longer than 0s")
    return gap
