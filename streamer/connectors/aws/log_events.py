"""Events of CloudWatch Logs: which of them have been read, and messages that are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

from streamer.connectors.spool.blocks import Record, pack_each
from streamer.core.json.dump import dump_json

OVERLAP_MS: Final = 30_000
"""How much later than newer ones an event may arrive, ms: this time is asked for again."""
MAX_EVENTS: Final = 20_000
"""Events of that time that are remembered; with more, less time is asked for again."""
_DIGEST_BYTES: Final = 16


class EventWindow:
    """The time from which events are asked for, and those events from then on that were read.

    An event is known by its ID: CloudWatch Logs has no positions, and events arrive late.

    Attributes:
        start_ms: events before it are not asked for, ms since 1970.
    """

    def __init__(self, start_ms: int) -> None:
        """Begin at a time, without events."""
        self.start_ms = start_ms
        self._read: dict[int, set[bytes]] = {}

    @classmethod
    def load(cls, saved: Mapping[str, Any]) -> EventWindow:
        """Return the window that `save` has saved."""
        window = cls(saved["start"])
        for time_ms, digests in saved["read"]:
            window._read[time_ms] = {
                digests[at : at + _DIGEST_BYTES] for at in range(0, len(digests), _DIGEST_BYTES)
            }
        return window

    def save(self) -> dict[str, Any]:
        """Return the window as a part of a mark."""
        read = [[time_ms, b"".join(sorted(some))] for time_ms, some in sorted(self._read.items())]
        return {"start": self.start_ms, "read": read}

    def take(self, events: Iterable[Mapping[str, Any]], now_ms: int) -> list[Mapping[str, Any]]:
        """Return those events that were not read before, and note them.

        Args:
            events: a page of an answer, as boto3 gives them, in the order of their times.
            now_ms: ms since 1970. Events may have times in the future: they move nothing.
        """
        taken = []
        for event in events:
            same_time = self._read.setdefault(_time_of(event), set())
            digest = _digest(event)
            if digest not in same_time:
                same_time.add(digest)
                taken.append(event)
        self._forget(now_ms)
        return taken

    def _forget(self, now_ms: int) -> None:
        if not self._read:
            return
        times = sorted(self._read)
        start_ms = min(times[-1], now_ms) - OVERLAP_MS
        number = sum(map(len, self._read.values()))
        for time_ms in times[:-1]:
            if time_ms >= start_ms and number <= MAX_EVENTS:
                break
            number -= len(self._read.pop(time_ms))
            # What is forgotten is never asked for again.
            start_ms = max(start_ms, time_ms + 1)
        self.start_ms = max(self.start_ms, start_ms)


def _time_of(event: Mapping[str, Any]) -> int:
    return int(event.get("timestamp", 0))


def _digest(event: Mapping[str, Any]) -> bytes:
    parts = (event.get("eventId"), event.get("logStreamName"))
    return blake2b(repr(parts).encode(), digest_size=_DIGEST_BYTES).digest()


def make_event_record(group: str, event: Mapping[str, Any], is_structured: bool) -> Record:
    """Return the message of an event: its text, or an object of all that it has."""
    text = event.get("message", "")
    named = {
        "event_id": event.get("eventId"),
        "ingestion_time": event.get("ingestionTime"),
        "log_group": group,
        "log_stream": event.get("logStreamName"),
        "timestamp": event.get("timestamp"),
    }
    named = {name: value for name, value in named.items() if value is not None}
    raw = dump_json({**named, "message": text}) if is_structured else text.encode()
    return pack_each([raw], {f"cloudwatch_{name}": str(value) for name, value in named.items()})
