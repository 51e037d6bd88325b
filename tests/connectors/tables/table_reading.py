"""Reads a table input as the engine does, and counts what comes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from streamer.connectors.tables.table_source import TableSource
from streamer.core.message import Message
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.replayable import Limit, Offset
from tests.components.inputs.reading import batches_of, built

ALL = Limit()
_STEP_NS = 3_600_000_000_000


class StateContext:
    """A context whose state lives as long as this; nothing runs in the background."""

    def __init__(self) -> None:
        self.state: Any = None
        self.waited = 0
        self.waiting: list[str] = []

    def load_state(self) -> Any:
        return self.state

    def save_state(self, state: Any) -> None:
        self.state = state

    def start(self, what: str, run: object) -> None:
        pass

    def report_waiting(self, what: str) -> None:
        self.waiting.append(what)

    def wait(self, seconds: float) -> bool:
        self.waited += 1
        return self.waited > 3


@dataclass
class TableStream:
    """A stream that reads a table, with its checkpoint.

    Attributes:
        config: the config of the input, in one line of YAML.
    """

    config: str
    context: StateContext = field(default_factory=StateContext)
    offset: Offset | None = None
    now: int = 0

    def open(self) -> TableSource:
        """Open the input, as each start of the program does."""
        source = built(f"input: {self.config}").open(cast(InputContext, self.context))
        return cast(TableSource, pickle.loads(pickle.dumps(source)))

    def batches(self, limit: Limit = ALL, parts: int = 1) -> Iterator[list[Message]]:
        """Read micro-batches until there is nothing new; each is read twice, by two processes."""
        source = self.open()
        for _ in range(1000):
            start = source.initial_offset() if self.offset is None else self.offset
            self.now += _STEP_NS
            latest = source.latest_offset(start, self.now, limit)
            if not latest.waiting:
                return
            first = batches_of(source, start, latest.offset, parts)
            again = batches_of(pickle.loads(pickle.dumps(source)), start, latest.offset, 1)
            assert [one.raw for [one] in again] == [one.raw for [one] in first]
            self.offset = latest.offset
            yield [one for [one] in first]
        raise AssertionError("the source does not come to an end")

    def read(self, limit: Limit = ALL, parts: int = 1) -> list[Any]:
        """Return the rows that are new."""
        return [one.doc for batch in self.batches(limit, parts) for one in batch]

    def read_operations(self) -> list[tuple[Any, Any]]:
        """Return the operation and the row of each message."""
        return [(one.meta["operation"], one.doc) for batch in self.batches() for one in batch]
