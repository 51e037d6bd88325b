"""Messages that a shard drops after they had come in: those that are late, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamer.message import Batch
from streamer.timestamps import format_rfc3339
from streamer.window.drops import REASON
from streamer.window.emission import Emission
from streamer.window.keyed.pages import Page
from streamer.window.metas import Metas
from streamer.window.status import Counters, LogLine


class Dropped(NamedTuple):
    """A message that is dropped."""

    arrival: int
    page: Page
    row: int


class Lates(list[Dropped]):
    """The late messages of a micro-batch, as they are found."""

    def drop(self, counters: Counters, handed_on: bool) -> Iterator[Emission]:
        """Count them and give them back; give them to `late_output` if they are handed on."""
        if not self:
            return
        self.sort(key=lambda dropped: dropped.arrival)
        counters.drop("late", len(self))
        by_page: dict[int, list[Dropped]] = {}
        for dropped in self:
            by_page.setdefault(id(dropped.page), []).append(dropped)
        for same in by_page.values():
            same[0].page.give_back(np.array([dropped.row for dropped in same], np.int64))
        if handed_on:
            yield Emission(None, messages_of(self, "late"), "dropped")

    def lines(self) -> tuple[LogLine, ...]:
        """Say how many there were."""
        if not self:
            return ()
        oldest = min(int(late.page.times[late.row]) for late in self)
        text = (
            f"late messages were dropped: {len(self)}; the oldest was of "
            f"{format_rfc3339(oldest)}, and all windows that they belong to had closed"
        )
        return (LogLine("WARN", text, {"reason": "late", "messages": len(self)}),)


def messages_of(dropped: Sequence[Dropped], reason: str) -> Batch:
    """Return dropped messages, with the reason in their metadata."""
    metas = Metas({REASON: reason})
    messages: Batch = []
    for _, page, row in dropped:
        ids = None if page.pack.meta_ids is None else page.pack.meta_ids[row : row + 1]
        messages += metas.messages([page.payloads[row]], page.pack.metas, ids)
    return messages
