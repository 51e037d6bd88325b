"""What the messages of a window are told of it, in their metadata: bounds, key, why it comes.

Times are RFC 3339 in UTC. A window's own entries are made once; those of a key are added to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from streamer.durations import MILLISECOND
from streamer.timestamps import format_rfc3339
from streamer.window.emission import WindowReason

START: Final = "window_start_timestamp"
END: Final = "window_end_timestamp"
NEWEST: Final = "window_max_timestamp"
START_MS: Final = "window_start_unix_ms"
END_MS: Final = "window_end_unix_ms"
KEY: Final = "window_key"
EMIT: Final = "window_emit"
COUNT: Final = "window_count"


class WindowLabels:
    """The metadata of one event-time window, over all its keys."""

    def __init__(self, start: int, end: int, reason: WindowReason) -> None:
        """Take the bounds as the kind's rules name them, ns, and why the window comes."""
        self._own = _bounds(start, end, reason)

    def of(self, newest: int, key: bytes | None = None) -> dict[str, Any]:
        """Return the metadata of the messages of a key, a new dict.

        Args:
            newest: the largest event time among them, ns.
            key: the key as JSON in the spelling of the first of them; None without keys.
        """
        return _with(dict(self._own), newest, key)


def window_labels(
    start: int, end: int, reason: WindowReason, newest: int, key: bytes | None
) -> dict[str, Any]:
    """Return the same of a window that has one key only."""
    return _with(_bounds(start, end, reason), newest, key)


def _bounds(start: int, end: int, reason: WindowReason) -> dict[str, Any]:
    return {
        START: format_rfc3339(start),
        END: format_rfc3339(end),
        START_MS: start // MILLISECOND,
        END_MS: end // MILLISECOND,
        EMIT: reason,
    }


def _with(found: dict[str, Any], newest: int, key: bytes | None) -> dict[str, Any]:
    found[NEWEST] = format_rfc3339(newest)
    if key is not None:
        found[KEY] = key_text(key)
    return found


def count_labels(count: int, key: bytes | None = None) -> Mapping[str, Any]:
    """Return the metadata of the messages of a count window, which has no bounds.

    Args:
        count: how many messages the batch holds.
        key: as `WindowLabels.of` takes it.
    """
    found: dict[str, Any] = {EMIT: "count", COUNT: count}
    if key is not None:
        found[KEY] = key_text(key)
    return found


def key_text(key: bytes) -> str:
    """Return a key as `window_key` shows it: a string as it is, anything else as JSON.

    Args:
        key: compact JSON with sorted keys.
    """
    if key[:1] != b'"':
        return key.decode()
    found: str = orjson.loads(key)
    return found
