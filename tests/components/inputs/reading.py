"""Reads a source as the engine does: planned in micro-batches, read in pieces."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.input.replayable import LatestOffset, Limit, Offset, RawMessages, ReplayableSource


def built(text: str) -> Any:
    """Build the input of a config."""
    config = parse_config(text)
    return build_context(config.resources).build(config.input)


@dataclass
class Said:
    """What an input logs and counts while it is read."""

    log: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def execution(self, now: int = 0) -> Execution:
        def count(name: str, by: int = 1, **labels: str) -> None:
            self.counts[name] = self.counts.get(name, 0) + by

        return Execution(
            lambda: now, lambda level, text, fields: self.log.append((level, text)), count
        )


def batches_of(
    source: ReplayableSource,
    start: Offset,
    end: Offset,
    parts: int = 1,
    ex: Execution | None = None,
) -> list[Batch]:
    """Read what lies between two offsets; every piece is pickled on its way, as by Spark."""
    ex = ex or Said().execution()
    found: list[Batch] = []
    for piece in source.split(start, end, parts):
        for chunk in source.read(pickle.loads(pickle.dumps(piece)), ex):
            if isinstance(chunk, RawMessages):
                found += [[Message(raw, chunk.meta)] for raw in chunk.raws]
            else:
                found += chunk
    return found


def raws_of(source: ReplayableSource, start: Offset, end: Offset, parts: int = 1) -> list[bytes]:
    """Read what lies between two offsets, as payloads."""
    return [m.raw for batch in batches_of(source, start, end, parts) for m in batch]


def planned(
    source: ReplayableSource, limit: Limit, start: Offset | None = None
) -> Iterator[tuple[Offset, LatestOffset]]:
    """Plan micro-batches until the source ends; gives each one's beginning and what it reaches."""
    at = source.initial_offset() if start is None else start
    for _ in range(1000):
        latest = source.latest_offset(at, 0, limit)
        yield at, latest
        at = latest.offset
        if latest.is_ended:
            return
    raise AssertionError("the source does not end")
