"""An input that is opened on the driver, and what has landed of what it receives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamer.core.message import Message
from streamer.sdk.input.input_context import open_input
from streamer.sdk.input.replayable import Limit

from .reading import batches_of, built
from .rooms import Lodging, lodging


class Taken:
    """An input that receives, and what has landed."""

    def __init__(self, lodged: Lodging, source: Any) -> None:
        self.lodged = lodged
        self._source = source
        self._at = source.initial_offset()
        self.messages: list[Message] = []

    def until(self, is_so: Callable[[list[Message]], bool]) -> list[Message]:
        """Wait for messages, and return all of them."""
        end = time.monotonic() + 60
        while not is_so(self.messages):
            assert time.monotonic() < end, (self.messages, self.lodged.log)
            to = self._source.latest_offset(self._at, 0, Limit()).offset
            found = batches_of(self._source, self._at, to)
            self.messages += [message for batch in found for message in batch]
            self._at = to
            time.sleep(0.005)
        return self.messages

    def raws(self, number: int) -> list[str]:
        return [one.raw.decode() for one in self.until(lambda found: len(found) >= number)]

    def counted(self, name: str, by: int = 1) -> None:
        self.until(lambda _: self.lodged.counts.get(name, 0) >= by)


@contextmanager
def receiving(directory: Path, config: str) -> Iterator[Taken]:
    """Open an input; at the end it is stopped, and its thread has ended."""
    source = built(f"input: {{{config}}}")
    with lodging(directory) as lodged:
        yield Taken(lodged, open_input(source, lodged.room))
    for thread in lodged.house.threads:
        thread.join(60)
        assert not thread.is_alive()
