"""A source for what plans micro-batches: it has nothing, and never ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streamer.core.execution import Execution
from streamer.sdk.input.replayable import Chunk, LatestOffset, Limit, Offset


class EmptySource:
    """A source of which tests replace what they need."""

    def initial_offset(self) -> Offset:
        return {}

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        return LatestOffset({}, 0)

    def watch(self, wake: Callable[[], None]) -> None: ...

    def next_poll(self, start: Offset, now: int) -> int | None:
        return None

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        return []

    def read(self, piece: Any, ex: Execution) -> Iterator[Chunk]:
        yield from ()

    def partition_of(self, piece: Any) -> str:
        return ""

    def on_committed(self, end: Offset) -> None: ...

    def on_finished(self) -> None: ...
