"""What windows that close together share: packs that are unpacked once, documents parsed once.

When a stream catches up, several sliding windows close in one step, and each holds most of the
panes of the one before. Without this, every message is cut out and parsed for each of them.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.documents import parsed
from streamer.lazy_batch import Column, LazyBatch
from streamer.message import UNPARSED, Batch, Message
from streamer.window.folds.release import Parts
from streamer.window.index import Pane
from streamer.window.keep import Keep
from streamer.window.merge import merge
from streamer.window.metas import Metas
from streamer.window.pack import Body, Columns, Pack

MOST: Final = 600_000
"""Messages of a window up to which documents are kept: some hundred MB of them in a worker."""


class SharedPack(Pack):
    """A pack that remembers what was cut out of it, and the documents that this turned out to be.

    Attributes:
        documents: by group, the messages' documents, once a window's pipeline has parsed them.
    """

    __slots__ = ("documents", "_payloads", "_whole", "_columns")

    def __init__(self, body: Body, shift: int = 0) -> None:
        """Unpack; see `Pack`."""
        super().__init__(body, shift)
        self.documents: dict[int, list[Any]] = {}
        self._payloads: dict[int, list[bytes]] = {}
        self._whole: Columns | None = None
        self._columns: dict[tuple[int, str], list[Any]] = {}

    def group(self, index: int) -> list[bytes]:
        """Return the payloads of one group; the list is shared."""
        found = self._payloads.get(index)
        if found is None:
            found = self._payloads[index] = super().group(index)
        return found

    def parsed(self, index: int) -> list[Any]:
        """Return the documents of one group; the list is shared.

        Raises:
            ValueError, MessageError: one of its payloads is not JSON.
        """
        found = self.documents.get(index)
        if found is None:
            found = self.documents[index] = parsed(self.group(index))
        return found

    def column(self, index: int, name: str, of: Column) -> list[Any]:
        """Return what a function of this name gives for the documents of one group; as `parsed`."""
        found = self._columns.get((index, name))
        if found is None:
            found = self._columns[index, name] = of(self.parsed(index))
        return found

    def whole(self) -> Columns:
        """Return all messages in order of arrival, however they are grouped; they are shared."""
        if self._whole is None:
            self._whole = merge([self], grouped=False)
        return self._whole


Segments = list[tuple[Pack, int]]


class SharedGroup:
    """A group of a window whose packs other windows hold too; see `lazy_batch.Content`."""

    def __init__(self, segments: list[tuple[SharedPack, int]], metas: Metas) -> None:
        """Take where its messages are, one after another, and what adds their metadata."""
        self._segments = segments
        self._metas = metas
        self.size = sum([pack.starts[index + 1] - pack.starts[index] for pack, index in segments])

    def first(self) -> Message:
        """See `Content`."""
        pack, index = self._segments[0]
        meta = 0 if pack.meta_ids is None else int(pack.meta_ids[pack.starts[index]])
        known = pack.documents.get(index)
        docs = None if known is None else known[:1]
        return self._metas.messages(pack.group(index)[:1], [pack.metas[meta]], None, docs)[0]

    def messages(self) -> Batch:
        """See `Content`."""
        found: Batch = []
        for pack, index in self._segments:
            ids = None if pack.meta_ids is None else pack.meta_ids[pack.span(index)]
            docs = pack.documents.get(index)
            found += self._metas.messages(pack.group(index), pack.metas, ids, docs)
        return found

    def parse(self) -> None:
        """See `Content`."""
        for pack, index in self._segments:
            pack.parsed(index)

    def documents(self) -> list[Any]:
        """See `Content`."""
        return [doc for pack, index in self._segments for doc in pack.parsed(index)]

    def column(self, name: str, of: Column) -> list[Any]:
        """See `Content`."""
        found: list[Any] = []
        for pack, index in self._segments:
            found += pack.column(index, name, of)
        return found


def documents_of(segments: Segments) -> list[Any] | None:
    """Return the documents of a group's messages, `UNPARSED` where one is not known yet.

    Returns:
        None when none of them is known.
    """
    documents: list[Any] = []
    some = False
    for pack, index in segments:
        known = pack.documents.get(index) if isinstance(pack, SharedPack) else None
        if known is None:
            documents += [UNPARSED] * (pack.starts[index + 1] - pack.starts[index])
        else:
            documents += known
            some = True
    return documents if some else None


def remember(segments: Segments, messages: Batch) -> None:
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
        if not isinstance(pack, SharedPack) or index in pack.documents:
            continue
        if all(message.has_doc() for message in part):
            pack.documents[index] = [message.doc for message in part]


class Shelf:
    """The unpacked panes of one step, as long as a window needs them."""

    def __init__(self, keep: Keep) -> None:
        """Take the store's side of it."""
        self._keep = keep
        self._packs: dict[int, list[SharedPack]] = {}
        self._parts: dict[int, Parts] = {}

    @property
    def empty(self) -> bool:
        """Whether no earlier window of the step has left anything."""
        return not self._packs and not self._parts

    def parts(self, pane: Pane) -> Parts:
        """Return what a pane consists of, its folded groups merged; it stays in the store."""
        found = self._parts.get(pane.pane)
        if found is None:
            found = self._parts[pane.pane] = Parts(self._keep.take(pane))
            found.settle()
        return found

    def packs(self, pane: Pane) -> list[SharedPack]:
        """Return the packs of a pane; they stay in the store."""
        found = self._packs.get(pane.pane)
        if found is None:
            found = [SharedPack(body, shift) for body, shift in self._keep.take(pane)]
            self._packs[pane.pane] = found
        return found

    def forget(self, pane: int) -> None:
        """Let go of a pane that no later window holds."""
        self._packs.pop(pane, None)
        self._parts.pop(pane, None)
