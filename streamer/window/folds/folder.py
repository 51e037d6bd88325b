"""Stage 1 of a window whose mapping folds: messages become folded groups as they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import orjson

from streamer.bloblang.folding import Fold
from streamer.documents import parser_for
from streamer.window.columns import by_value
from streamer.window.folds.fields import Docs, Fields
from streamer.window.folds.groups import Groups
from streamer.window.folds.pack import encode
from streamer.window.folds.part import Column, selected
from streamer.window.ints import Ints
from streamer.window.row import Kind, Row
from streamer.window.stamps import GROUP_MASK, SLOT_BITS
from streamer.window.stamps import Groups as Keys
from streamer.window.ways import Looking

MESSAGES: Final = 1 << 20
"""Messages that are folded together at most; what is held of each is a few bytes."""

AT_ONCE: Final = 1024
"""Messages whose documents are made together: so few that they stay in the processor's cache."""

_GROUPS: Final = 1 << 17
_BYTES: Final = 64 << 20
_SAMPLES: Final = ((1 << 16, 1 / 2), (1 << 12, 15 / 16))
"""From so many messages on, the share of first ones above which groups are too small."""

_TABLE: Final = 1 << 22


class Folder:
    """Folds the messages of one task.

    Attributes:
        messages: how many are held.
    """

    def __init__(self, fold: Fold, key_id: int | None) -> None:
        """Begin.

        Args:
            fold: what is asked of the messages.
            key_id: identifies the expression that gives the groups; None without one.
        """
        self._fold = fold
        self._key_id = key_id
        self._fields = Fields(fold)
        self._begin()

    def _begin(self) -> None:
        self._codes: list[Ints] = []
        self._arrivals: list[Ints] = []
        self._times: list[Ints] = []
        self._columns: list[list[Column]] = [[] for _ in self._fields.accumulators]
        self._firsts: dict[int, tuple[int, bytes, bytes]] = {}
        self._size = 0
        self.messages = 0

    @property
    def full(self) -> bool:
        """Whether it is time to make rows of what is held."""
        many = self.messages >= MESSAGES or len(self._firsts) >= _GROUPS
        return many or self._size >= _BYTES

    @property
    def worthwhile(self) -> bool:
        """Whether groups are big enough: a group of one message takes more than the message.

        Few messages say little of how many keys there are: where one in sixteen of the first 4,096
        has met its like, there are some ten thousands, and they meet theirs as more come.
        """
        for messages, share in _SAMPLES:
            if self.messages >= messages:
                return len(self._firsts) <= share * self.messages
        return True

    def columns(self, docs: Docs) -> list[Column]:
        """Return what messages bring, for `add`."""
        return self._fields.columns(self._fields.values(docs))

    def seen(self, way: Looking, raws: list[bytes]) -> tuple[Ints, list[Column]]:
        """Return the codes of payloads, and what they bring; raises whatever one makes it raise."""
        codes: list[int] = []
        values: list[list[Any]] = [[] for _ in self._columns]
        quick = None if self._fields.exact else way.loads or orjson.loads
        for start in range(0, len(raws), AT_ONCE):
            some = raws[start : start + AT_ONCE]
            docs = list(map(quick or parser_for(some), some))
            codes += way.codes(docs)
            for held, found in zip(values, self._fields.values(docs), strict=True):
                held += found
        return np.array(codes, np.int64), self._fields.columns(values)

    def add(
        self,
        raws: list[bytes],
        codes: Ints,
        arrivals: Ints,
        metas: list[bytes],
        columns: list[Column],
        times: Ints | None = None,
    ) -> None:
        """Add messages that follow those before.

        Args:
            raws: payloads.
            codes: by message, slot and group (`stamps.SLOT_BITS`).
            arrivals: by message.
            metas: by message, as `encode_meta` writes it; or the one that all share.
            columns: what they bring, by part.
            times: by message, its event time; where windows follow them, for all messages.
        """
        if not raws:
            return
        self._codes.append(codes)
        self._arrivals.append(arrivals)
        if times is not None:
            self._times.append(times)
        for held, column in zip(self._columns, columns, strict=True):
            held.append(column)
            self._size += column.size
        self.messages += len(raws)
        listed = codes.tolist()
        new = set(listed).difference(self._firsts)  # by `-` it would go through all of these
        if new:
            # The last that is put in for a code is its first message.
            shared = metas * len(raws) if len(metas) == 1 else metas
            whens = reversed(arrivals.tolist())
            messages = zip(whens, reversed(raws), reversed(shared), strict=True)
            firsts = dict(zip(reversed(listed), messages, strict=True))
            found = {code: firsts[code] for code in new}
            self._firsts.update(found)
            self._size += sum([len(raw) for _, raw, _ in found.values()])

    def rows(self, where: list[tuple[Kind, int]], keys: Keys | None) -> Iterator[Row]:
        """Give back all that is held, a pack for each shard and pane, and begin anew.

        Args:
            where: by slot, kind and pane.
            keys: by group, key and shard; None when there is no key.
        """
        shards = None if keys is None else keys.shard_of
        names = None if keys is None else keys.key_of
        for shard, slot, groups in self.groups(len(where), names, shards):
            yield Row(shard, *where[slot], groups.first, encode(groups)[0])

    def groups(
        self, slots: int, keys: list[bytes] | None, shards: list[int] | None
    ) -> Iterator[tuple[int, int, Groups]]:
        """Give back all that is held, by shard and slot, and begin anew.

        Args:
            slots: how many there are.
            keys: by group; None when there is no key, and one group.
            shards: by group; None for one shard.
        """
        if not self.messages:
            return
        codes = np.sort(np.fromiter(self._firsts, np.int64, len(self._firsts)))
        groups = _places(codes, np.concatenate(self._codes))
        accumulators = self._fields.accumulators
        arrivals = np.concatenate(self._arrivals)
        columns = [a.gathered(held) for a, held in zip(accumulators, self._columns, strict=True)]
        newest = self._newest(groups, len(codes))
        rows = codes >> SLOT_BITS
        if shards is not None:
            rows = rows + slots * np.array(shards, np.int64)[codes & GROUP_MASK]
        row_of = rows[groups]
        for messages in by_value(row_of):
            row = int(row_of[messages[0]])
            shard, slot = divmod(row, slots)
            mine = np.flatnonzero(rows == row)
            number = np.empty(len(codes), np.int64)
            number[mine] = np.arange(len(mine))
            local = number[groups[messages]]
            brought = [selected(column, messages) for column in columns]
            listed = codes[mine].tolist()
            made = self._made(listed, keys, local, arrivals[messages], brought)
            made.newest = None if newest is None else newest[mine]
            yield shard, slot, made
        self._begin()

    def _newest(self, groups: Ints, count: int) -> Ints | None:
        if not self._times:
            return None
        newest = np.full(count, np.iinfo(np.int64).min)
        np.maximum.at(newest, groups, np.concatenate(self._times))
        return newest

    def _made(
        self,
        codes: list[int],
        keys: list[bytes] | None,
        groups: Ints,
        arrivals: Ints,
        columns: list[Column],
    ) -> Groups:
        firsts = [self._firsts[code] for code in codes]
        count = len(codes)
        return Groups(
            text=self._fold.text,
            key_id=self._key_id,
            keys=[b"" if keys is None else keys[code & GROUP_MASK] for code in codes],
            counts=np.bincount(groups, minlength=count),
            arrivals=np.array([first[0] for first in firsts], np.int64),
            payloads=[first[1] for first in firsts],
            metas=[first[2] for first in firsts],
            last=int(arrivals.max()),
            states=[
                accumulator.state(column, groups, count, arrivals)
                for accumulator, column in zip(self._fields.accumulators, columns, strict=True)
            ],
        )


def _places(codes: Ints, values: Ints) -> Ints:
    """Return where each value stands among sorted codes, of which it is one."""
    slots, groups = codes >> SLOT_BITS, codes & GROUP_MASK
    width = int(groups.max()) + 1
    if (int(slots.max()) + 1) * width > _TABLE:
        return np.searchsorted(codes, values)
    # A table is several times as fast as a search.
    table = np.empty((int(slots.max()) + 1) * width, np.int64)
    table[slots * width + groups] = np.arange(len(codes))
    return table[(values >> SLOT_BITS) * width + (values & GROUP_MASK)]
