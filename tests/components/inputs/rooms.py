"""Rooms as a stream gives them to its inputs, for tests of inputs alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamer.engine.driver.input_host import InputHost


@dataclass
class Lodging:
    """A house, and what its inputs have said and counted."""

    house: InputHost
    log: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    fields: list[Mapping[str, Any]] = field(default_factory=list)

    def said(self, name: str) -> Any:
        """Return the last value of a field in the log."""
        return next(fields[name] for fields in reversed(self.fields) if name in fields)

    @property
    def room(self) -> Any:
        return self.house.root_context()


@contextmanager
def lodging(
    directory: Path,
    known: Mapping[str, Any] | None = None,
    read_stdin: Callable[[int], bytes] | None = None,
) -> Iterator[Lodging]:
    """Give rooms for as long as the block runs; then receivers are told to stop."""
    log: list[tuple[str, str]] = []
    counts: dict[str, int] = {}
    said: list[Mapping[str, Any]] = []

    def count(name: str, by: int = 1, **labels: str) -> None:
        counts[name] = counts.get(name, 0) + by

    def say(level: str, text: str, fields: Mapping[str, Any]) -> None:
        log.append((level, text))
        said.append(fields)

    house = InputHost(directory, known or {}, say, count, threading.Event(), read_stdin)
    try:
        yield Lodging(house, log, counts, said)
    finally:
        house.stop()
