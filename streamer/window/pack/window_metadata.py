"""Metadata that a window adds to its messages: bounds, key, why it is emitted.

Times are RFC 3339 in UTC. A window's own entries are made once; those of a key are added to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from streamer.core.durations import MICROSECOND, MILLISECOND, SECOND
from streamer.core.timestamps import format_rfc3339
from streamer.window.contract import WindowReason

if TYPE_CHECKING:
    from streamer.window.settings.int_codec import Ints

WINDOW_START: Final = "window_start_timestamp"
WINDOW_END: Final = "window_end_timestamp"
WINDOW_MAX_TIME: Final = "window_max_timestamp"
WINDOW_START_MS: Final = "window_start_unix_ms"
WINDOW_END_MS: Final = "window_end_unix_ms"
WINDOW_KEY: Final = "window_key"
WINDOW_EMIT: Final = "window_emit"
WINDOW_COUNT: Final = "window_count"
WINDOW_START_OFFSET: Final = "window_start_offset"
WINDOW_END_OFFSET: Final = "window_end_offset"

MAX_SHOWN_KEY_CHARS: Final = 200
"""Characters of a key that people see in lists."""

_UNITS: Final = (("s", SECOND), ("ms", MILLISECOND), ("us", MICROSECOND))


class WindowMetadata:
    """The metadata of one event-time window, over all its keys.

    Attributes:
        entries: what all its messages have, whatever their key.
    """

    def __init__(self, start: int, end: int, reason: WindowReason) -> None:
        """Take the bounds as the kind's rules name them, ns, and why the window comes."""
        self.entries = _make_bounds(start, end, reason)

    def for_key(self, max_time: int, key: bytes | None = None) -> dict[str, Any]:
        """Return the metadata of the messages of a key, a new dict.

        Args:
            max_time: the largest event time among them, ns.
            key: the key as JSON in the spelling of the first of them; None without keys.
        """
        return _add_key(dict(self.entries), max_time, key)


def make_window_metadata(
    start: int, end: int, reason: WindowReason, max_time: int | None, key: bytes | None
) -> dict[str, Any]:
    """Return the same of a window that has one key only; one without messages has no `max_time`."""
    return _add_key(_make_bounds(start, end, reason), max_time, key)


def _make_bounds(start: int, end: int, reason: WindowReason) -> dict[str, Any]:
    return {
        WINDOW_START: format_rfc3339(start),
        WINDOW_END: format_rfc3339(end),
        WINDOW_START_MS: start // MILLISECOND,
        WINDOW_END_MS: end // MILLISECOND,
        WINDOW_EMIT: reason,
    }


def _add_key(entries: dict[str, Any], max_time: int | None, key: bytes | None) -> dict[str, Any]:
    if max_time is not None:
        entries[WINDOW_MAX_TIME] = format_rfc3339(max_time)
    if key is not None:
        entries[WINDOW_KEY] = format_key(key)
    return entries


def format_times(times: Ints) -> list[str]:
    """Return instants as `format_rfc3339` writes them; they are not `INT64_MIN`."""
    # Imported here: components only want the names above.
    import numpy as np

    unit = next((name for name, size in _UNITS if not (times % size).any()), "ns")
    instants = times.astype("datetime64[ns]").astype(f"datetime64[{unit}]")
    texts: list[str] = np.datetime_as_string(instants).tolist()
    if unit == "s":
        return [text + "Z" for text in texts]
    return [text.rstrip("0").rstrip(".") + "Z" for text in texts]


def format_keys(keys: Sequence[bytes]) -> list[str]:
    """Return keys as `window_key` shows them."""
    if all(key.startswith(b'"') for key in keys):
        texts: list[str] = orjson.loads(b"[%b]" % b",".join(keys))
        return texts
    return list(map(format_key, keys))


def make_count_metadata(
    reason: WindowReason, count: int, offsets: tuple[int, int] | None, key: bytes | None = None
) -> Mapping[str, Any]:
    """Return the metadata of the messages of a count window, which has no bounds in time.

    Args:
        reason: why it comes.
        count: how many messages the batch holds.
        offsets: of its first message among those of its key, from 0, and behind the last one that
            it holds when it is full; None where conditions begin and end windows.
        key: as `WindowMetadata.for_key` takes it.
    """
    entries: dict[str, Any] = {WINDOW_EMIT: reason, WINDOW_COUNT: count}
    if offsets is not None:
        entries |= {WINDOW_START_OFFSET: offsets[0], WINDOW_END_OFFSET: offsets[1]}
    if key is not None:
        entries[WINDOW_KEY] = format_key(key)
    return entries


def make_unbounded_metadata(
    reason: WindowReason, max_time: int, key: bytes | None
) -> dict[str, Any]:
    """Return the metadata of the messages of a window without end.

    Args:
        reason: why it comes.
        max_time: the largest event time in it, ns.
        key: as `WindowMetadata.for_key` takes it.
    """
    return _add_key({WINDOW_EMIT: reason}, max_time, key)


def format_shown_key(key: bytes | None) -> str | None:
    """Return a key as people see it in lists: as `window_key` shows it, shortened."""
    return None if key is None else shorten_key(format_key(key))


def shorten_key(text: str) -> str:
    """Return the text of a key as people see it in lists."""
    return text if len(text) <= MAX_SHOWN_KEY_CHARS else f"{text[:MAX_SHOWN_KEY_CHARS]}…"


def format_key(key: bytes) -> str:
    """Return a key as `window_key` shows it: a string as it is, anything else as JSON.

    Args:
        key: compact JSON with sorted keys.
    """
    if key[:1] != b'"':
        return key.decode()
    text: str = orjson.loads(key)
    return text
