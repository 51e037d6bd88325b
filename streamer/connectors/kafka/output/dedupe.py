"""Headers by which a reader knows records that come again: `dedupe_headers`.

A micro-batch that is written and then fails, or whose end the checkpoint has not heard of, comes
again, with the same messages in the same order. So its number, the part of it (a shard, or a piece
of the input) and the place of a message among those of the part name a message for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from streamer.bloblang.golib.text import metadata_text
from streamer.connectors.kafka.output.headers import Header
from streamer.core.execution import Execution
from streamer.core.message import IndexedMessage, Message
from streamer.window.pack.window_metadata import WINDOW_END, WINDOW_KEY, WINDOW_START

WINDOW_ID: Final = "window_id"
BATCH_ID: Final = "batch_id"
SEQUENCE: Final = "batch_sequence"


class DedupeHeaders:
    """Makes the headers of one output."""

    def headers_of(self, message: Message, ex: Execution) -> list[Header]:
        """Return the headers of a message: those of its window, then those of its micro-batch.

        Outside of a stream there is no micro-batch; then only a window is named.
        """
        headers: list[Header] = []
        window = window_id_of(message.meta)
        if window:
            headers.append((WINDOW_ID, window.encode()))
        if ex.micro_batch is not None and isinstance(message, IndexedMessage):
            output, place = message.place[:2]
            stream, number, part = ex.micro_batch
            headers.append((BATCH_ID, f"{stream}-{number}-{part}".encode()))
            headers.append((SEQUENCE, (f"late-{place}" if output else str(place)).encode()))
        return headers


def window_id_of(meta: Mapping[str, Any]) -> str:
    """Return a name of the window that made a message: its start, end and key; empty for none.

    What the same window emits later has the same name.
    """
    end = meta.get(WINDOW_END)
    if end is None:
        return ""
    parts = [
        metadata_text(meta[name]) if name in meta else ""
        for name in (WINDOW_START, WINDOW_END, WINDOW_KEY)
    ]
    named = "".join(f"{len(part)}:{part}" for part in parts).encode(errors="surrogatepass")
    return hashlib.blake2b(named, digest_size=16).hexdigest()
