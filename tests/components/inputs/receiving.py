"""Inputs that receive, opened as a stream does, and read as they are sent something."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamer.sdk.input.input_context import open_input
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import built, raws_of
from tests.components.inputs.rooms import Lodging, lodging


class Receiving:
    """An input that was opened, and what it has received."""

    def __init__(self, lodged: Lodging, source: Any) -> None:
        self.lodged = lodged
        self.source = source
        self._at = source.initial_offset()
        self.raws: list[bytes] = []

    def look(self) -> bool:
        """Take what has landed; return whether the input has ended."""
        latest = self.source.latest_offset(self._at, 0, Limit())
        self.raws += raws_of(self.source, self._at, latest.offset)
        self._at = latest.offset
        return latest.is_ended

    def wait(self, count: int, what: Callable[[], bool] = lambda: True) -> list[bytes]:
        """Wait until so many messages have come."""
        until = time.monotonic() + 60
        while len(self.raws) < count or not what():
            assert time.monotonic() < until, (self.raws, self.lodged.log)
            self.look()
            time.sleep(0.005)
        return self.raws

    def wait_for_end(self) -> list[bytes]:
        until = time.monotonic() + 60
        while not self.look():
            assert time.monotonic() < until, (self.raws, self.lodged.log)
            time.sleep(0.005)
        return self.raws


@contextmanager
def receiving(tmp_path: Path, text: str) -> Iterator[Receiving]:
    with lodging(tmp_path / "spool") as lodged:
        yield Receiving(lodged, open_input(built(text), lodged.room))
