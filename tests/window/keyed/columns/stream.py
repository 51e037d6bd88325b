"""Runs the oracles' micro-batches through sessions that are folded, as columns or key by key."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import orjson

from streamer.bloblang.errors import QueryError
from streamer.window import DictStore, Emission, Shard
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.evaluate.queries import CompiledMapping
from streamer.window.keyed.columns import sessions
from streamer.window.keyed.columns.sessions import SessionColumns
from tests.window import stages
from tests.window.kinds_stream import EventStream, raw_of
from tests.window.oracle.events import Event, MicroBatch
from tests.window.oracle.session import Session

MAPPING = """
root = if batch_index() == 0 {
  {
    "sum": json("n").from_all().sum(),
    "min": json("n").from_all().min(),
    "max": json("n").from_all().max(),
    "count": batch_size(),
  }
} else { deleted() }
"""


class FoldedSessions(EventStream):
    """Sessions of numbers.

    Attributes:
        by_columns: how many messages were put into sessions as columns, by micro-batch and shard.
        groups: what came out.
        late: for those who count late messages.
        having: which sessions are wanted.
    """

    def __init__(
        self,
        rules: Session,
        numbers: Any,
        shards: int = 1,
        chance: random.Random | None = None,
        text: str = MAPPING,
    ) -> None:
        super().__init__(rules, shards=shards, chance=chance)
        self._numbers = numbers
        self.text = text
        self.by_columns: list[int] = []
        self.groups: list[AggregatedGroup] = []
        self.late = 0
        self.having: CompiledMapping | None = None

    def number(self, event: Event) -> Any:
        """What an event brings."""
        return self._numbers[zlib.crc32(event.id.encode()) % len(self._numbers)]

    def raw(self, event: Event) -> bytes:
        return orjson.dumps({**orjson.loads(raw_of(event)), "n": self.number(event)})

    def shard(self, store: DictStore) -> Shard:
        return Shard(self.window, store, having=self.having, aggregated_mapping=self.text)

    def run(self, *asked: Any) -> stages.Given[Any]:
        plain = SessionColumns.step

        def step(self_: SessionColumns, *args: Any) -> Any:
            found = plain(self_, *args)
            self.by_columns.append(self_.taken)
            return found

        with patch.object(SessionColumns, "step", step):
            return super().run(*asked)

    def _again(self, *tried: Any) -> None:
        known = len(self.by_columns)
        super()._again(*tried)
        del self.by_columns[known:]

    def told(self, emission: Emission) -> Any:
        group = emission.messages
        assert isinstance(group, AggregatedGroup) and len(group) == 1
        self.groups.append(group)
        meta = dict(group[0].meta)
        bounds = emission.start, emission.end
        values = [
            _value(group, part) for part in range(len(aggregation_for(group.text).aggregates))
        ]
        return emission.reason, emission.key, bounds, meta, group[0].raw, group.size, values


def _value(group: AggregatedGroup, part: int) -> Any:
    try:
        return repr(group.aggregate_value(part))
    except QueryError as e:
        return str(e)


@contextmanager
def key_by_key() -> Iterator[None]:
    """Have no sessions as columns."""
    with patch.object(sessions, "numeric_aggregates_for", lambda window, text: None):
        yield


def outcome(found: stages.Given[Any]) -> Any:
    """All that can be seen of a micro-batch, but for how many bytes are held."""
    statuses = [{**s.as_dict(), "held_bytes": 0} for s in found.statuses]
    return found.batches, found.failed, statuses


def batch(t: int, *times: int, key: object = "a", partition: int = 0) -> MicroBatch:
    """Events of a key, named by their times."""
    events = tuple(Event(f"{key} {time}", time, key, partition) for time in times)
    return MicroBatch(t, events)
