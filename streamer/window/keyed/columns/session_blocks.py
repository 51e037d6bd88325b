"""Storage of open sessions in a shard's state: in blocks, by the hash of their keys.

A micro-batch reads and writes the blocks of the keys that it touches, and blocks with due sessions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson

from streamer.core.json.dump import dump_json
from streamer.window.keyed.columns.open_sessions import (
    OpenSessions,
    concat_sessions,
    decode_sessions,
    encode_sessions,
)
from streamer.window.keyed.key_buckets import bucket_of, resize_count
from streamer.window.settings.int_codec import Ints
from streamer.window.state.layout import (
    SESSION_BLOCK_SEQ,
    SESSION_BLOCKS_HEAD_KEY,
    SESSION_BLOCKS_HEAD_VERSION,
)
from streamer.window.state_store import StateStore, check_format


class SessionBlocks:
    """The open sessions of a shard, all for one mapping.

    Attributes:
        text: the mapping; None before the first session.
    """

    def __init__(self, store: StateStore, known: bool) -> None:
        """Read the head of the blocks.

        Args:
            store: the shard's state.
            known: whether there are sessions.

        Raises:
            StreamerError: a later version of the program wrote the head.
        """
        self._store = store
        data = store.get(*SESSION_BLOCKS_HEAD_KEY) if known else None
        fields: dict[str, Any] = {} if data is None else orjson.loads(data)
        check_format(
            "what a window knows of its sessions",
            fields.get("version", 1),
            (SESSION_BLOCKS_HEAD_VERSION,),
        )
        self.text: str | None = fields.get("text")
        self._count: int = fields.get("count", 1)
        # By number: the least end, sessions, messages, bytes.
        self._block_stats: dict[int, list[int]] = {n: some for n, *some in fields.get("blocks", ())}
        self._changed = False

    def __len__(self) -> int:
        return sum(known[1] for known in self._block_stats.values())

    @property
    def held_count(self) -> int:
        """Number of messages of all sessions."""
        return sum(known[2] for known in self._block_stats.values())

    @property
    def held_bytes(self) -> int:
        """About how many bytes all sessions take."""
        return sum(known[3] for known in self._block_stats.values())

    @property
    def earliest_end(self) -> int | None:
        """The least end of all sessions, ns; None without sessions."""
        return min((known[0] for known in self._block_stats.values()), default=None)

    def select_blocks(self, keys: Iterable[bytes], until: int) -> list[int]:
        """Return the numbers of the blocks of some keys, and of those with an end up to `until`."""
        count = self._count
        known = {bucket_of(key, count) for key in keys} & self._block_stats.keys()
        return sorted(known | {n for n, some in self._block_stats.items() if some[0] <= until})

    def list_blocks(self) -> list[int]:
        """Return the numbers of all blocks."""
        return sorted(self._block_stats)

    def load(self, numbers: list[int], columns: int) -> OpenSessions:
        """Read the sessions of blocks, which `save` must then write; `columns` as for `save`."""
        loaded = [OpenSessions.empty(columns)]
        for number in numbers:
            data = self._store.get(number, SESSION_BLOCK_SEQ)
            assert data is not None
            loaded.append(decode_sessions(data))
        return concat_sessions(loaded)

    def save(self, opened: OpenSessions, numbers: list[int], text: str, columns: int) -> None:
        """Replace the sessions of blocks.

        Args:
            opened: the sessions of the blocks that were loaded, and new ones of touched keys.
            numbers: the numbers of the loaded blocks.
            text: the mapping.
            columns: number of columns that the mapping's aggregates need.
        """
        if not len(opened) and not numbers:
            return
        self._changed = True
        self.text = text
        others_count = len(self) - sum(self._block_stats[n][1] for n in numbers)
        target = resize_count(self._count, others_count + len(opened))
        if target != self._count:
            others = [number for number in self._block_stats if number not in set(numbers)]
            opened = concat_sessions([opened, self.load(others, columns)])
            numbers = list(self._block_stats)
            self._count = target
        for number in numbers:
            self._block_stats.pop(number)
        written = set()
        for number, some in _split_by_block(opened, self._count):
            body = encode_sessions(some)
            self._store.put(number, SESSION_BLOCK_SEQ, body)
            least, messages = int(some.ends.min()), int(some.counts.sum())
            self._block_stats[number] = [least, len(some), messages, some.size]
            written.add(number)
        for number in numbers:
            if number not in written:
                self._store.delete(number, SESSION_BLOCK_SEQ)

    def write_head(self) -> None:
        """Write the head of the blocks, if it has changed."""
        if not self._changed:
            return
        if not self._block_stats:
            if self._store.get(*SESSION_BLOCKS_HEAD_KEY) is not None:
                self._store.delete(*SESSION_BLOCKS_HEAD_KEY)
            return
        blocks = [[number, *known] for number, known in self._block_stats.items()]
        fields = {
            "version": SESSION_BLOCKS_HEAD_VERSION,
            "text": self.text,
            "count": self._count,
            "blocks": blocks,
        }
        self._store.put(*SESSION_BLOCKS_HEAD_KEY, dump_json(fields))


def _split_by_block(opened: OpenSessions, count: int) -> Iterable[tuple[int, OpenSessions]]:
    if not len(opened):
        return
    if count == 1:
        yield 0, opened
        return
    numbers: Ints = np.fromiter(
        (bucket_of(key, count) for key in opened.keys), np.int64, len(opened)
    )
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    for number, indices in zip(ordered[starts].tolist(), np.split(order, starts[1:]), strict=True):
        yield number, opened.take(indices)
