"""Where open sessions are in the store: in blocks, by the hash of their keys.

A micro-batch reads and writes the blocks of the keys that it touches, and those of which a session
is due.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import orjson

from streamer.value import dump_json
from streamer.window.ints import Ints
from streamer.window.keyed.columns.opened import Opened, all_of, decode, encode
from streamer.window.keyed.drawers import number_of
from streamer.window.store import Store
from streamer.window.versions import check_format

SEQ: Final = -5
"""Seq of the blocks in the store; their pane is their number."""

PLACE: Final = (0, -6)
"""Where the store says what it has of them."""

_VERSION: Final = 1
_ROOM: Final = 4096
_MOST: Final = 4096


class Blocks:
    """The open sessions of a shard, which are all kept for one mapping.

    Attributes:
        text: the mapping.
        sessions: how many there are.
        held: how many messages they have.
        size: about how many bytes they hold.
    """

    def __init__(self, store: Store, known: bool) -> None:
        """Read what the store says of them.

        Args:
            store: the shard's state.
            known: whether there are any.

        Raises:
            StreamerError: a later version of the program wrote it.
        """
        self._store = store
        data = store.get(*PLACE) if known else None
        fields: dict[str, Any] = {} if data is None else orjson.loads(data)
        check_format("what a window knows of its sessions", fields.get("version", 1), (_VERSION,))
        self.text: str | None = fields.get("text")
        self._count: int = fields.get("count", 1)
        # By number: the least end, sessions, messages, bytes.
        self._known: dict[int, list[int]] = {n: some for n, *some in fields.get("blocks", ())}
        self._changed = False

    def __len__(self) -> int:
        return sum(known[1] for known in self._known.values())

    @property
    def held(self) -> int:
        """How many messages the sessions have."""
        return sum(known[2] for known in self._known.values())

    @property
    def size(self) -> int:
        """About how many bytes they hold."""
        return sum(known[3] for known in self._known.values())

    @property
    def least_end(self) -> int | None:
        """The least end of all, ns; None without any."""
        return min((known[0] for known in self._known.values()), default=None)

    def touched(self, keys: Iterable[bytes], until: int) -> list[int]:
        """Return the blocks of some keys, and those with a session that ends by a time."""
        count = self._count
        known = {number_of(key, count) for key in keys} & self._known.keys()
        return sorted(known | {n for n, some in self._known.items() if some[0] <= until})

    def all(self) -> list[int]:
        """Return all blocks."""
        return sorted(self._known)

    def take_out(self, numbers: list[int], columns: int) -> Opened:
        """Take blocks out of the store; they must be put back."""
        found = [Opened.none(columns)]
        for number in numbers:
            data = self._store.get(number, SEQ)
            assert data is not None
            found.append(decode(data))
        return all_of(found)

    def put_back(self, opened: Opened, numbers: list[int], text: str, columns: int) -> None:
        """Put sessions back.

        Args:
            opened: those of the blocks that were taken out, and new ones of the same keys.
            numbers: of these blocks.
            text: the mapping.
            columns: how many columns of numbers there are.
        """
        if not len(opened) and not numbers:
            return
        self._changed = True
        self.text = text
        wanted = self._wanted(len(self) - sum(self._known[n][1] for n in numbers) + len(opened))
        if wanted != self._count:
            others = [number for number in self._known if number not in set(numbers)]
            opened = all_of([opened, self.take_out(others, columns)])
            numbers = list(self._known)
            self._count = wanted
        for number in numbers:
            self._known.pop(number)
        written = set()
        for number, some in _by_block(opened, self._count):
            body = encode(some)
            self._store.put(number, SEQ, body)
            least, messages = int(some.ends.min()), int(some.counts.sum())
            self._known[number] = [least, len(some), messages, some.size]
            written.add(number)
        for number in numbers:
            if number not in written:
                self._store.delete(number, SEQ)

    def write(self) -> None:
        """Say in the store what it has of them."""
        if not self._changed:
            return
        if not self._known:
            if self._store.get(*PLACE) is not None:
                self._store.delete(*PLACE)
            return
        blocks = [[number, *known] for number, known in self._known.items()]
        fields = {"version": _VERSION, "text": self.text, "count": self._count, "blocks": blocks}
        self._store.put(*PLACE, dump_json(fields))

    def _wanted(self, sessions: int) -> int:
        wanted = self._count
        while sessions > _ROOM * wanted and wanted < _MOST:
            wanted *= 2
        while wanted > 1 and sessions < _ROOM * wanted // 8:
            wanted //= 2
        return wanted


def _by_block(opened: Opened, count: int) -> Iterable[tuple[int, Opened]]:
    if not len(opened):
        return
    if count == 1:
        yield 0, opened
        return
    numbers: Ints = np.fromiter(
        (number_of(key, count) for key in opened.keys), np.int64, len(opened)
    )
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    for number, chosen in zip(ordered[starts].tolist(), np.split(order, starts[1:]), strict=True):
        yield number, opened.take(chosen)
