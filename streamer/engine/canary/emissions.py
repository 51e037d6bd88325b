"""Emissions of windows, and which window each is of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import pyarrow as pa

from streamer.connectors.tables.arrow_streams import decode_batches
from streamer.engine.canary.captured_windows import Portion

_COLUMNS: Final = (
    *("key", "key_json", "branch", "window_start", "window_end", "emit", "ordinal", "part"),
    *("content", "metadata", "error"),
)
_TIMES: Final = frozenset(("window_start", "window_end"))


class WindowIdentity(NamedTuple):
    """A window, whichever revision emits it.

    Attributes:
        buffer: the number of its buffer.
        key: its key, as `window_key` shows it; None without a key.
        key_json: the same as JSON.
        branch: which check of a `group_by` it was parted by; None for none.
        start: its start, ns.
        end: its end, ns.
        emit: why it is emitted.
    """

    buffer: int
    key: str | None
    key_json: str | None
    branch: int | None
    start: int
    end: int
    emit: str

    @property
    def series(self) -> tuple[int, str | None, int | None]:
        """All windows of its key and buffer."""
        return self.buffer, self.key_json, self.branch


class ResultRow(NamedTuple):
    """A message that the pipeline has made of a window.

    Attributes:
        content: the message.
        metadata: its own metadata as JSON; None for none.
        error: the reason why a processor has failed on it; None for none.
    """

    content: bytes
    metadata: str | None
    error: str | None


WindowEmission = tuple[ResultRow, ...]
"""All rows of a window that are emitted at once, in their order."""

EmissionsByWindow = Mapping[WindowIdentity, list[WindowEmission]]


def read_emissions(portions: Iterable[Portion], shards: int) -> EmissionsByWindow:
    """Return the emissions of a micro-batch by window, those of each in their order.

    Args:
        portions: what was captured.
        shards: how many shards a buffer has.
    """
    rows: list[tuple[tuple[WindowIdentity, int, int], ResultRow]] = []
    for shard, body in portions:
        for table in decode_batches(body):
            buffer = shard // max(shards, 1)
            columns = [_read_column(table, name) for name in _COLUMNS]
            for key, key_json, branch, start, end, emit, ordinal, part, *own in zip(
                *columns, strict=True
            ):
                window = WindowIdentity(buffer, key, key_json, branch, start, end, emit)
                rows.append(((window, ordinal, part), ResultRow(*own)))
    # A shard has all of a window, and its rows come in order: sorting keeps those of a window.
    emissions: dict[WindowIdentity, list[WindowEmission]] = {}
    by_window: dict[WindowIdentity, list[tuple[int, int, ResultRow]]] = {}
    for (window, ordinal, part), row in rows:
        by_window.setdefault(window, []).append((ordinal, part, row))
    for window, mine in by_window.items():
        mine.sort(key=itemgetter(0, 1))
        emissions[window] = [
            tuple(row for _, _, row in same) for _, same in groupby(mine, key=itemgetter(0))
        ]
    return emissions


def count_emissions(portions: Iterable[Portion]) -> int:
    """Return how many emissions a micro-batch has, without a look at their rows."""
    places: set[tuple[int, int]] = set()
    for shard, body in portions:
        for table in decode_batches(body):
            places.update((shard, ordinal) for ordinal in table.column("ordinal").to_pylist())
    return len(places)


def _read_column(table: pa.Table, name: str) -> list[object]:
    column = table.column(name)
    values: list[object] = (column.cast(pa.int64()) if name in _TIMES else column).to_pylist()
    return values
