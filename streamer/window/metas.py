"""Messages of payloads and encoded metadata, which many of them share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any, NamedTuple, Protocol

from streamer.message import UNPARSED, Batch, Message
from streamer.window.ints import Ints
from streamer.window.metadata import decode_meta

Decoded = dict[bytes, tuple[Mapping[str, Any], str | None]]
"""Metadata and error, by what `encode_meta` wrote."""


class Metas:
    """Decodes metadata, adds entries to it, and gives equal ones as one object."""

    def __init__(self, entries: Mapping[str, Any], decoded: Decoded | None = None) -> None:
        """Prepare.

        Args:
            entries: what is added.
            decoded: remembers metadata without what is added, for those who add other entries.
        """
        self._entries = dict(entries)
        self._decoded = {} if decoded is None else decoded
        self._known: Decoded = {}

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
            decoded = self._decoded.get(encoded)
            if decoded is None:
                decoded = self._decoded[encoded] = decode_meta(encoded)
            meta, error = decoded
            found = self._known[encoded] = ({**meta, **self._entries}, error)
        return found


class Released(NamedTuple):
    """A group of a window, or a whole window.

    Attributes:
        first: the arrival of its first message.
        key: the group's; None for a whole window.
        messages: its messages, in order of arrival.
    """

    first: int
    key: bytes | None
    messages: Batch


class Labels(Protocol):
    """Says what the messages of a window are told of it.

    Attributes:
        by_group: whether groups are told different things; else all are told the same.
    """

    by_group: bool

    def of(self, key: bytes | None, newest: int | None) -> Metas:
        """Return what adds the metadata of a group, or of the whole window.

        Args:
            key: the group's, in the spelling of its first message; None for the whole window.
            newest: the largest event time inside, ns; None where it was not kept.
        """


class Alike:
    """Tells all messages the same, whatever their group and their times."""

    by_group = False

    def __init__(self, entries: Mapping[str, Any]) -> None:
        """Take what is told."""
        self._metas = Metas(entries)

    def of(self, key: bytes | None, newest: int | None) -> Metas:
        """See `Labels`."""
        return self._metas
