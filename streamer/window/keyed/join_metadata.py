"""The metadata of joined messages: those of both sides, and the times of the pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.core.durations import MILLISECOND, SECOND
from streamer.core.timestamps import format_rfc3339
from streamer.window.contract import WindowReason
from streamer.window.pack.metadata_codec import decode_meta
from streamer.window.pack.window_metadata import (
    WINDOW_EMIT,
    WINDOW_END,
    WINDOW_END_MS,
    WINDOW_KEY,
    WINDOW_MAX_TIME,
    WINDOW_START,
    WINDOW_START_MS,
    format_key,
)


class JoinMetadata:
    """Makes the metadata of the joined messages of one micro-batch."""

    def __init__(self) -> None:
        self._second_texts: dict[int, str] = {}
        self._decoded_metadata: dict[bytes, Mapping[str, Any]] = {}
        self._merged_metadata: dict[tuple[bytes, bytes], Mapping[str, Any]] = {}

    def make(
        self,
        meta: Mapping[str, Any],
        bounds: tuple[int, int],
        max_time: int,
        key: bytes | None,
        reason: WindowReason,
    ) -> dict[str, Any]:
        """Return the metadata of a message; `key` in the spelling of the left message of a pair."""
        start, end = bounds
        ends = self._format_time(end)
        entries = {
            **meta,
            WINDOW_START: self._format_time(start),
            WINDOW_END: ends,
            WINDOW_START_MS: start // MILLISECOND,
            WINDOW_END_MS: end // MILLISECOND,
            WINDOW_EMIT: reason,
            WINDOW_MAX_TIME: ends if max_time == end else self._format_time(max_time),
        }
        if key is not None:
            entries[WINDOW_KEY] = format_key(key)
        return entries

    def _format_time(self, time: int) -> str:
        """Format a time; the texts of seconds are cached, since most times lie in a few of them."""
        second, rest = divmod(time, SECOND)
        text = self._second_texts.get(second)
        if text is None:
            text = self._second_texts[second] = format_rfc3339(second * SECOND)[:-1]
        return f"{text}.{rest:09d}".rstrip("0") + "Z" if rest else text + "Z"

    def merge(self, left: bytes, right: bytes) -> Mapping[str, Any]:
        """Merge the metadata of both sides; the left side's entries win."""
        both = self._merged_metadata.get((left, right))
        if both is None:
            both = {**self.decode(right), **self.decode(left)}
            self._merged_metadata[left, right] = both
        return both

    def decode(self, meta: bytes) -> Mapping[str, Any]:
        """Return metadata that `encode_meta` wrote."""
        metadata = self._decoded_metadata.get(meta)
        if metadata is None:
            metadata = self._decoded_metadata[meta] = decode_meta(meta)[0]
        return metadata
