"""Messages of payloads and encoded metadata, which many of them share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any

from streamer.message import UNPARSED, Batch, Message
from streamer.window.ints import Ints
from streamer.window.metadata import decode_meta


class Metas:
    """Decodes metadata, adds entries to it, and gives equal ones as one object."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = dict(entries)
        self._known: dict[bytes, tuple[Mapping[str, Any], str | None]] = {}

    def messages(
        self,
        payloads: Iterable[bytes],
        metas: list[bytes],
        ids: Ints | None,
        documents: list[Any] | None = None,
    ) -> Batch:
        """Make messages of payloads and their metadata, with their documents if they are known."""
        known = [self._of(meta) for meta in metas]
        if ids is None and known[0][1] is None:
            meta = repeat(known[0][0])
            if documents is not None:
                return list(map(Message, payloads, meta, repeat(None), documents))
            return list(map(Message, payloads, meta))
        of = repeat(known[0]) if ids is None else (known[i] for i in ids.tolist())
        docs = repeat(UNPARSED) if documents is None else documents
        return [
            Message(raw, meta, error, doc)
            for raw, (meta, error), doc in zip(payloads, of, docs, strict=False)
        ]

    def _of(self, encoded: bytes) -> tuple[Mapping[str, Any], str | None]:
        found = self._known.get(encoded)
        if found is None:
            meta, error = decode_meta(encoded)
            found = self._known[encoded] = ({**meta, **self._entries}, error)
        return found
