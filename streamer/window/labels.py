"""What the messages of a window are told of it, in their metadata: bounds, key, why it comes.

Times are RFC 3339 in UTC. A window's own entries are made once; those of a key are added to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from streamer.durations import MICROSECOND, MILLISECOND, SECOND
from streamer.timestamps import format_rfc3339
from streamer.window.emission import WindowReason

if TYPE_CHECKING:
    from streamer.window.ints import Ints

START: Final = "window_start_timestamp"
END: Final = "window_end_timestamp"
NEWEST: Final = "window_max_timestamp"
START_MS: Final = "window_start_unix_ms"
END_MS: Final = "window_end_unix_ms"
KEY: Final = "window_key"
EMIT: Final = "window_emit"
COUNT: Final = "window_count"

_UNITS: Final = (("s", SECOND), ("ms", MILLISECOND), ("us", MICROSECOND))


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


def labels_of(
    starts: Ints, ends: Ints, reasons: Sequence[WindowReason], newest: Ints, keys: Sequence[bytes]
) -> list[dict[str, Any]]:
    """Return the same for many windows at once, which takes a third of the time.

    Args:
        starts: by window, ns; of these and other times none is `INT64_MIN`.
        ends: likewise.
        reasons: by window.
        newest: by window, the largest event time, ns.
        keys: by window, the key; empty without keys.
    """
    of_ends = texts_of(ends)
    bounds = (texts_of(starts), of_ends, (starts // MILLISECOND).tolist())
    rest = ((ends // MILLISECOND).tolist(), reasons)
    of_newest = of_ends if newest is ends else texts_of(newest)
    found = [
        {START: start, END: end, START_MS: start_ms, END_MS: end_ms, EMIT: reason, NEWEST: last}
        for start, end, start_ms, end_ms, reason, last in zip(
            *bounds, *rest, of_newest, strict=True
        )
    ]
    for told, key in zip(found, key_texts(keys), strict=False):
        told[KEY] = key
    return found


def texts_of(times: Ints) -> list[str]:
    """Return instants as `format_rfc3339` writes them; they are not `INT64_MIN`."""
    # Imported here: components only want the names above.
    import numpy as np

    unit = next((name for name, size in _UNITS if not (times % size).any()), "ns")
    instants = times.astype("datetime64[ns]").astype(f"datetime64[{unit}]")
    found: list[str] = np.datetime_as_string(instants).tolist()
    if unit == "s":
        return [text + "Z" for text in found]
    return [text.rstrip("0").rstrip(".") + "Z" for text in found]


def key_texts(keys: Sequence[bytes]) -> list[str]:
    """Return keys as `window_key` shows them."""
    if all(key.startswith(b'"') for key in keys):
        found: list[str] = orjson.loads(b"[%b]" % b",".join(keys))
        return found
    return list(map(key_text, keys))


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
