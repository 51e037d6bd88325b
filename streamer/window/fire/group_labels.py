"""The metadata of windows for many groups at once, which takes a third of the time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from streamer.core.durations import MILLISECOND
from streamer.core.timestamps import format_rfc3339
from streamer.core.value import INT64_MIN
from streamer.window.contract import WindowReason
from streamer.window.fire.group_columns import LabelColumns
from streamer.window.pack.window_metadata import (
    WINDOW_EMIT,
    WINDOW_END,
    WINDOW_END_MS,
    WINDOW_KEY,
    WINDOW_MAX_TIME,
    WINDOW_START,
    WINDOW_START_MS,
    format_keys,
    format_times,
)
from streamer.window.settings.int_codec import Ints


def make_label_columns(
    starts: Ints,
    ends: Ints,
    reasons: Sequence[WindowReason],
    max_times: Ints,
    keys: Sequence[bytes],
) -> LabelColumns:
    """Return what `make_window_metadata` gives, for many windows.

    Args:
        starts: by window, ns; of these and other times none is `INT64_MIN`.
        ends: likewise.
        reasons: by window.
        max_times: by window, the largest event time, ns.
        keys: by window, the key; empty without keys.
    """
    of_ends = cache(partial(format_times, ends))
    columns: dict[str, Callable[[], Sequence[Any]]] = {
        WINDOW_START: partial(format_times, starts),
        WINDOW_END: of_ends,
        WINDOW_START_MS: lambda: (starts // MILLISECOND).tolist(),
        WINDOW_END_MS: lambda: (ends // MILLISECOND).tolist(),
        WINDOW_EMIT: lambda: reasons,
        WINDOW_MAX_TIME: of_ends if max_times is ends else partial(format_times, max_times),
    }
    if keys:
        columns[WINDOW_KEY] = partial(format_keys, keys)
    return LabelColumns({}, columns)


def make_shared_labels(
    shared: Mapping[str, Any], max_times: Ints | None = None, keys: Sequence[bytes] = ()
) -> LabelColumns:
    """Return the metadata of groups of one window.

    Args:
        shared: what is the same for all of them.
        max_times: by group, the largest event time, ns, where each has its own.
        keys: by group, the key as it is spelled, where windows have keys.
    """
    columns: dict[str, Callable[[], Sequence[Any]]] = {}
    if max_times is not None:
        columns[WINDOW_MAX_TIME] = partial(format_each_time, max_times)
    if keys:
        columns[WINDOW_KEY] = partial(format_keys, keys)
    return LabelColumns(shared, columns)


def format_each_time(times: Ints) -> list[str]:
    """Return instants as `format_rfc3339` writes them; they may be any."""
    if int(times.min()) == INT64_MIN:
        return list(map(format_rfc3339, times.tolist()))
    return format_times(times)
