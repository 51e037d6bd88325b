"""Messages of payloads and encoded metadata, which many of them share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any, NamedTuple, Protocol

from streamer.core.message import UNPARSED, Batch, Message
from streamer.window.pack.metadata_codec import decode_meta
from streamer.window.settings.int_codec import Ints

DecodedMetadata = dict[bytes, tuple[Mapping[str, Any], str | None]]
"""Metadata and error, by what `encode_meta` wrote."""


class MessageBuilder:
    """Decodes metadata, adds entries to it, and gives equal ones as one object."""

    def __init__(self, entries: Mapping[str, Any], decoded: DecodedMetadata | None = None) -> None:
        """Prepare.

        Args:
            entries: what is added.
            decoded: remembers metadata without what is added, for those who add other entries.
        """
        self._entries = dict(entries)
        self._decoded = {} if decoded is None else decoded
        self._known: DecodedMetadata = {}

    def build_messages(
        self,
        payloads: Iterable[bytes],
        metas: list[bytes],
        ids: Ints | None,
        documents: list[Any] | None = None,
    ) -> Batch:
        """Make messages of payloads and their metadata, with their documents if they are known."""
        known = [self._metadata_of(meta) for meta in metas]
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

    def _metadata_of(self, encoded: bytes) -> tuple[Mapping[str, Any], str | None]:
        entry = self._known.get(encoded)
        if entry is None:
            decoded = self._decoded.get(encoded)
            if decoded is None:
                decoded = self._decoded[encoded] = decode_meta(encoded)
            meta, error = decoded
            entry = self._known[encoded] = ({**meta, **self._entries}, error)
        return entry


class FiredGroup(NamedTuple):
    """A group of a window, or a whole window.

    Attributes:
        first: the arrival of its first message.
        key: the group's; None for a whole window.
        messages: its messages, in order of arrival.
    """

    first: int
    key: bytes | None
    messages: Batch


class GroupMetadata(Protocol):
    """Gives the metadata that a window adds to its messages.

    Attributes:
        differs_by_group: whether groups get different metadata; else all get the same.
    """

    differs_by_group: bool

    def builder_for(self, key: bytes | None, max_time: int | None) -> MessageBuilder:
        """Return what adds the metadata of a group, or of the whole window.

        Args:
            key: the group's, in the spelling of its first message; None for the whole window.
            max_time: the largest event time inside, ns; None where it was not kept.
        """


class SameMetadata:
    """The same metadata for all messages, whatever their group and their times."""

    differs_by_group = False

    def __init__(self, entries: Mapping[str, Any]) -> None:
        """Take the metadata."""
        self._builder = MessageBuilder(entries)

    def builder_for(self, key: bytes | None, max_time: int | None) -> MessageBuilder:
        """Return the builder that all groups share."""
        return self._builder
