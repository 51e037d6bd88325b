"""Headers by which a reader knows records that come again: `dedupe_headers`.

A micro-batch that is written and then fails, or whose end the checkpoint has not heard of, comes
again, with the same messages in the same order. So its number, the part of it (a shard, or a piece
of the input) and the place of a message among those of the part name a message for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from streamer.bloblang.runtime.text import meta_text
from streamer.kafka.headers import Header
from streamer.message import Execution, Message, Placed
from streamer.window.labels import END, KEY, START

WINDOW_ID: Final = "window_id"
BATCH_ID: Final = "batch_id"
SEQUENCE: Final = "batch_sequence"


class Deduping:
    """Makes the headers of one output."""

    def headers(self, message: Message, ex: Execution) -> list[Header]:
        """Return the headers of a message: those of its window, then those of its micro-batch.

        Outside of a stream there is no micro-batch; then only a window is named.
        """
        found: list[Header] = []
        window = window_id(message.meta)
        if window:
            found.append((WINDOW_ID, window.encode()))
        if ex.micro_batch is not None and isinstance(message, Placed):
            output, place = message.place[:2]
            stream, number, part = ex.micro_batch
            found.append((BATCH_ID, f"{stream}-{number}-{part}".encode()))
            found.append((SEQUENCE, (f"late-{place}" if output else str(place)).encode()))
        return found


def window_id(meta: Mapping[str, Any]) -> str:
    """Return a name of the window that made a message: its start, end and key; empty for none.

    What the same window emits later has the same name.
    """
    end = meta.get(END)
    if end is None:
        return ""
    parts = [meta_text(meta[name]) if name in meta else "" for name in (START, END, KEY)]
    named = "".join(f"{len(part)}:{part}" for part in parts).encode(errors="surrogatepass")
    return hashlib.blake2b(named, digest_size=16).hexdigest()
