"""Cuts bytes with a scanner that is built from YAML, in blocks of any size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.input.replayable import RawMessages
from streamer.sdk.input.scanning import START_MARK, ScanInput, ScanMark, ScannedCut, Scanner


class Dribble:
    """A stream that gives few bytes at a time, and cannot be wound on."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data = data
        self._size = size
        self.at = 0

    def read(self, size: int, /) -> bytes:
        found = self._data[self.at : self.at + min(size, self._size)]
        self.at += len(found)
        return found


def scanner(yaml: str) -> Scanner:
    """Build a scanner such as `lines: {}`."""
    config = parse_config(f"input: {{file: {{paths: [x], scanner: {{{yaml}}}}}}}", env={})
    built: Scanner = build_context().build(config.input.config["scanner"])
    return built


def cuts(
    of: Scanner,
    data: bytes,
    size: int = 1 << 30,
    since: ScanMark = START_MARK,
    most: int = 1000,
    name: str = "in",
    ex: Execution | None = None,
) -> Iterator[ScannedCut]:
    """Cut bytes that come `size` at a time."""
    ex = ex or Execution(lambda: 0)
    yield from of.scan_stream(ScanInput(Dribble(data, size), name, {"path": name}, ex), since, most)


def stored(mark: ScanMark) -> ScanMark:
    """Return a mark after it was JSON, as in a checkpoint."""
    return ScanMark(*json.loads(json.dumps(mark)))


def messages(cut: ScannedCut) -> list[Message]:
    chunk = cut.chunk
    if isinstance(chunk, RawMessages):
        return [Message(raw, chunk.meta) for raw in chunk.raws]
    return [message for batch in chunk for message in batch]


def all_of(of: Scanner, data: bytes, **how: Any) -> list[Message]:
    return [message for cut in cuts(of, data, **how) for message in messages(cut)]


def raws(of: Scanner, data: bytes, **how: Any) -> list[bytes]:
    return [message.raw for message in all_of(of, data, **how)]
