"""Cache for windows that close together: packs are unpacked once, documents parsed once.

When a stream catches up, several sliding windows close in one step, and each holds most of the
panes of the one before. Without this, every message is cut out and parsed for each of them.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.core.json.bulk import parse_payloads
from streamer.core.lazy_batch import Column, LazyBatch
from streamer.core.message import UNPARSED, Batch, Message
from streamer.window.aggregate.fire_groups import PaneParts
from streamer.window.pack.merge_packs import merge_packs
from streamer.window.pack.message_builder import MessageBuilder
from streamer.window.pack.pack_codec import Pack, PackBytes, PackColumns
from streamer.window.state.pane_index import Pane
from streamer.window.state.pane_store import PaneStore

MAX_CACHED_MESSAGES: Final = 600_000
"""Messages of a window up to which documents are kept: some hundred MB of them in a worker."""


class CachedPack(Pack):
    """A pack that remembers what was cut out of it, and the documents that this turned out to be.

    Attributes:
        documents: by group, the messages' documents, once a window's pipeline has parsed them.
    """

    __slots__ = ("documents", "_payloads", "_whole", "_columns")

    def __init__(self, body: PackBytes, shift: int = 0) -> None:
        """Unpack; see `Pack`."""
        super().__init__(body, shift)
        self.documents: dict[int, list[Any]] = {}
        self._payloads: dict[int, list[bytes]] = {}
        self._whole: PackColumns | None = None
        self._columns: dict[tuple[int, str], list[Any]] = {}

    def group_payloads(self, index: int) -> list[bytes]:
        """Return the payloads of one group; the list is shared."""
        payloads = self._payloads.get(index)
        if payloads is None:
            payloads = self._payloads[index] = super().group_payloads(index)
        return payloads

    def parse_group(self, index: int) -> list[Any]:
        """Return the documents of one group; the list is shared.

        Raises:
            ValueError, MessageError: one of its payloads is not JSON.
        """
        documents = self.documents.get(index)
        if documents is None:
            documents = self.documents[index] = parse_payloads(self.group_payloads(index))
        return documents

    def read_column(self, index: int, name: str, of: Column) -> list[Any]:
        """Return what a function of this name gives for the documents of one group; as `parsed`."""
        values = self._columns.get((index, name))
        if values is None:
            values = self._columns[index, name] = of(self.parse_group(index))
        return values

    def merge_messages(self) -> PackColumns:
        """Return all messages in order of arrival, however they are grouped; they are shared."""
        if self._whole is None:
            self._whole = merge_packs([self], grouped=False)
        return self._whole


PackSegments = list[tuple[Pack, int]]


class CachedGroup:
    """A group of a window whose packs other windows hold too; see `lazy_batch.Content`."""

    def __init__(self, segments: list[tuple[CachedPack, int]], metas: MessageBuilder) -> None:
        """Take where its messages are, one after another, and what adds their metadata."""
        self._segments = segments
        self._metas = metas
        self.size = sum([pack.starts[index + 1] - pack.starts[index] for pack, index in segments])

    def first(self) -> Message:
        """Return the first message."""
        pack, index = self._segments[0]
        meta = 0 if pack.meta_ids is None else int(pack.meta_ids[pack.starts[index]])
        known = pack.documents.get(index)
        docs = None if known is None else known[:1]
        return self._metas.build_messages(
            pack.group_payloads(index)[:1], [pack.metas[meta]], None, docs
        )[0]

    def messages(self) -> Batch:
        """Return all messages."""
        batch: Batch = []
        for pack, index in self._segments:
            ids = None if pack.meta_ids is None else pack.meta_ids[pack.group_slice(index)]
            docs = pack.documents.get(index)
            batch += self._metas.build_messages(pack.group_payloads(index), pack.metas, ids, docs)
        return batch

    def parse(self) -> None:
        """Parse the documents of all messages."""
        for pack, index in self._segments:
            pack.parse_group(index)

    def documents(self) -> list[Any]:
        """Return the documents of all messages."""
        return [doc for pack, index in self._segments for doc in pack.parse_group(index)]

    def column(self, name: str, of: Column) -> list[Any]:
        """Return the results of a function for all documents, cached by `name`."""
        values: list[Any] = []
        for pack, index in self._segments:
            values += pack.read_column(index, name, of)
        return values


def known_documents(segments: PackSegments) -> list[Any] | None:
    """Return the documents of a group's messages, `UNPARSED` where one is not known yet.

    Returns:
        None when none of them is known.
    """
    documents: list[Any] = []
    some = False
    for pack, index in segments:
        known = pack.documents.get(index) if isinstance(pack, CachedPack) else None
        if known is None:
            documents += [UNPARSED] * (pack.starts[index + 1] - pack.starts[index])
        else:
            documents += known
            some = True
    return documents if some else None


def cache_documents(segments: PackSegments, messages: Batch) -> None:
    """Keep the documents that a window's pipeline has parsed, for the windows that follow.

    Args:
        segments: where the messages are from.
        messages: in the order of the segments.
    """
    if isinstance(messages, LazyBatch) and messages.content is not None:
        return  # what was parsed is in the packs already
    if not messages or not messages[0].has_doc():
        return
    at = 0
    for pack, index in segments:
        until = at + pack.starts[index + 1] - pack.starts[index]
        part = messages[at:until]
        at = until
        if not isinstance(pack, CachedPack) or index in pack.documents:
            continue
        if all(message.has_doc() for message in part):
            pack.documents[index] = [message.doc for message in part]


class PaneCache:
    """The unpacked panes of one step, as long as a window needs them."""

    def __init__(self, keep: PaneStore) -> None:
        """Take the store's side of it."""
        self._keep = keep
        self._packs: dict[int, list[CachedPack]] = {}
        self._parts: dict[int, PaneParts] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no earlier window of the step has left anything."""
        return not self._packs and not self._parts

    def load_parts(self, pane: Pane) -> PaneParts:
        """Return the parts of a pane, its aggregated groups merged; they stay in the store."""
        parts = self._parts.get(pane.pane)
        if parts is None:
            parts = self._parts[pane.pane] = PaneParts(self._keep.load_packs(pane))
            parts.merge_groups()
        return parts

    def load_packs(self, pane: Pane) -> list[CachedPack]:
        """Return the packs of a pane; they stay in the store."""
        packs = self._packs.get(pane.pane)
        if packs is None:
            packs = [CachedPack(body, shift) for body, shift in self._keep.load_packs(pane)]
            self._packs[pane.pane] = packs
        return packs

    def evict(self, pane: int) -> None:
        """Forget a pane that no later window holds."""
        self._packs.pop(pane, None)
        self._parts.pop(pane, None)
