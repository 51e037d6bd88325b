"""The windows that are open in the states of shards, and how two states differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from streamer.core.disk import sync_data
from streamer.core.timestamps import parse_rfc3339
from streamer.plan import Plan
from streamer.service.monitoring.window_rows import merge_rows, row_document
from streamer.window import StateStore
from streamer.window.inspect.inspect_shard import answer_query
from streamer.window.inspect.window_query import WindowQuery

COLUMNS: Final = (
    *("buffer", "key", "side", "start", "end", "messages", "bytes", "closes", "closes_by"),
    *("closes_idle", "messages_missing"),
)
"""The columns of a listing, in their order."""

_TIMES: Final = ("start", "end", "closes", "closes_idle")
_COUNTS: Final = ("messages", "bytes", "messages_missing")
_PLACE: Final = ("buffer", "key", "side", "start")
_COMPARED: Final = ("end", "messages", "bytes", "closes", "closes_idle", "messages_missing")
_MAX_WINDOWS: Final = 10_000_000


def list_state_windows(
    plan: Plan,
    stores: Sequence[StateStore],
    key: str | None = None,
    max_windows: int = _MAX_WINDOWS,
) -> list[dict[str, Any]]:
    """Return the open windows of all buffers, the oldest first.

    Args:
        plan: the stream's.
        stores: the states of the shards of the first buffer, then of the next one.
        key: lists only windows with just this key; None for all.
        max_windows: of a shard, those that are listed at most, the oldest first.
    """
    query = WindowQuery(
        limit=max_windows,
        key=key,
        only_key=key is not None,
        max_keys=max_windows,
        lists_keys=True,
    )
    labels = [one.label for one in plan.buffers] or [""]
    each = len(stores) // len(labels)
    listed = []
    for number, (label, window) in enumerate(zip(labels, plan.windows, strict=True)):
        own = stores[each * number : each * (number + 1)]
        rows = merge_rows(row for store in own for row in answer_query(window, store, query).rows)
        documents = ({"buffer": label, **row_document(row)} for row in rows)
        listed += [{name: one[name] for name in COLUMNS} for one in documents]
    return sorted(listed, key=lambda one: tuple(str(one[name] or "") for name in _PLACE))


def diff_windows(
    before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the windows that differ between two listings.

    Returns:
        The fields that name each window, `change` (`opened`, `closed` or `changed`), and under
        `fields` the values before and after of those that differ.
    """
    old, new = _by_place(before), _by_place(after)
    changes = []
    for place in sorted({*old, *new}, key=str):
        one, other = old.get(place), new.get(place)
        fields = {
            name: [None if side is None else side[name] for side in (one, other)]
            for name in _COMPARED
            if (one or {}).get(name) != (other or {}).get(name)
        }
        if one is None or other is None or fields:
            change = "opened" if one is None else "closed" if other is None else "changed"
            named = dict(zip(_PLACE, place, strict=True))
            changes.append({**named, "change": change, "fields": fields})
    return changes


def _by_place(listed: Iterable[Mapping[str, Any]]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    return {tuple(one[name] for name in _PLACE): one for one in listed}


def write_parquet(path: str, batch: int, listed: Sequence[Mapping[str, Any]]) -> None:
    """Write a listing to a Parquet file: times in UTC, with nanoseconds.

    It is written beside and renamed when it is whole: after a crash there is the former file or
    this one. What a crash has left beside it is replaced by the next export.

    Args:
        path: of the file, which is replaced.
        batch: the micro-batch of the state, which is the first column.
        listed: the windows.

    Raises:
        OSError: the file cannot be written.
    """
    # Imported here: who lists windows need not wait for it.
    import pyarrow as pa
    from pyarrow import parquet

    columns: dict[str, Any] = {"micro_batch": pa.array([batch] * len(listed), pa.int64())}
    for name in COLUMNS:
        values = [one[name] for one in listed]
        if name in _TIMES:
            times = [None if value is None else parse_rfc3339(value).ns for value in values]
            columns[name] = pa.array(times, pa.timestamp("ns", "UTC"))
        else:
            columns[name] = pa.array(values, pa.int64() if name in _COUNTS else pa.string())
    place = Path(path)
    draft = place.with_name(f".{place.name}.draft")
    try:
        with draft.open("wb") as file:
            parquet.write_table(pa.table(columns), file)
            file.flush()
            sync_data(file.fileno())
        draft.replace(place)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
