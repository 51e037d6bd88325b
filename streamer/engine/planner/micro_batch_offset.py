"""Offset of a micro-batch: all that a replay must see again, as Spark's log has it.

When a stream is started with another mapping, windows that are open were folded for the one before,
and finish on it. Until the driver knows how far these reach, messages are kept whole; those are
folded for the mapping of their window when it closes. From then on, later windows fold for the new
mapping. All this is in the offsets, so that a replay folds the same.

Every process that plans micro-batches imports this: it must stay free of what a mapping needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.core.errors import StreamerError
from streamer.sdk.input.replayable import Offset
from streamer.window import MicroBatchInfo
from streamer.window.settings.back_pressure import BackPressure

_VERSION: Final = 1
"""Of the JSON form; a version is never written again with another meaning of a key."""


class AggregatesFrom(NamedTuple):
    """The windows that aggregate for a mapping, by the mapping's identity.

    Attributes:
        identity: the mapping's; None when no window was ever folded, so that any may.
        after: event times, ns, up to this one belong to windows that were begun under another
            mapping; None when there are none.
    """

    identity: str | None
    after: int | None


FROM_THE_START: Final = AggregatesFrom(None, None)


def next_aggregates_from(
    before: AggregatesFrom, identity: str, newest_end: int | None, known: bool
) -> AggregatesFrom:
    """Return what the offset of the next micro-batch says.

    Args:
        before: what the one before says.
        identity: of the mapping of this start; empty when windows keep messages.
        newest_end: the end of the newest window that holds messages, ns; None when none does.
        known: whether `newest_end` was told by a micro-batch of this start.
    """
    if not identity or before.identity == identity:
        return before
    if before.identity is None:
        return AggregatesFrom(identity, None)
    return AggregatesFrom(identity, newest_end) if known else before


@dataclass(frozen=True, slots=True)
class MicroBatchOffset:
    """End of our source's part of a micro-batch, and the decisions made when it was planned.

    Not to be confused with the position in one input (`streamer.sdk.input.replayable.Offset`),
    which is its `data`. It is planned before Spark writes it, and never decided again.

    Attributes:
        data: the position in the input.
        tick: how many due times of windows have passed, so that windows close without data.
        start_id: differs for every start of the program; empty before the first micro-batch.
        ended: the input is bounded, and this is its end.
        aggregates_from: the windows that aggregate for the mapping.
        lag: the input is behind.
        batch_time: the micro-batch's time, ns: when our source was polled; 0 before the first.
        pieces: how many tasks share the micro-batch; 0 for the plan's number.
        requested_at: when a micro-batch was requested last, Unix ns; 0 for never.
        pressure: what the micro-batch before took of the stream's own time, where that may be long.
        suspended: by how much time went on by itself since the micro-batch before, ns.
        step: counts micro-batches beside Kafka, whose offsets must differ; 0 without.
        ends: where Kafka's partitions end, for each input, where tasks need that.
        backlog_ends: where Kafka ended at the start, until all before it is planned.
    """

    data: Offset
    tick: int = 0
    start_id: str = ""
    ended: bool = False
    aggregates_from: AggregatesFrom = FROM_THE_START
    lag: bool = False
    batch_time: int = 0
    pieces: int = 0
    requested_at: int = 0
    pressure: BackPressure | None = None
    suspended: int = 0
    step: int = 0
    ends: Sequence[Offsets] = ()
    backlog_ends: Sequence[Offsets] = ()

    def to_fields(self) -> dict[str, Any]:
        """Return the offset as a JSON object, without a check sum."""
        rare = {
            "woken": self.requested_at,
            "pressure": self.pressure and self.pressure.to_fields(),
            "stood": self.suspended,
            "step": self.step,
            "ends": self.ends,
            "backlog_ends": self.backlog_ends,
        }
        return {
            "version": _VERSION,
            "data": self.data,
            "tick": self.tick,
            "start": self.start_id,
            "ended": self.ended,
            "folded": self.aggregates_from,
            "lag": self.lag,
            "time": self.batch_time,
            "pieces": self.pieces,
            **{name: value for name, value in rare.items() if value},
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Return the offset that a JSON object describes; what is not in it has its default.

        Offsets of 0.1 and 0.2 have no version.

        Raises:
            StreamerError: a later version has written it.
            ValueError: it is something else.
        """
        try:
            version, pressure = fields.get("version", 0), fields.get("pressure")
            if version <= _VERSION:
                return cls(
                    data=fields.get("data", {}),
                    tick=fields.get("tick", 0),
                    start_id=fields.get("start", ""),
                    ended=fields.get("ended", False),
                    aggregates_from=AggregatesFrom(*fields.get("folded", FROM_THE_START)),
                    lag=fields.get("lag", False),
                    # A micro-batch that a former version planned may come again.
                    batch_time=int(fields.get("time", fields.get("floor", 0))),
                    pieces=fields.get("pieces", 0),
                    requested_at=fields.get("woken", 0),
                    pressure=None if pressure is None else BackPressure.from_fields(pressure),
                    suspended=fields.get("stood", 0),
                    step=fields.get("step", 0),
                    ends=fields.get("ends", ()),
                    backlog_ends=fields.get("backlog_ends", ()),
                )
        except (AttributeError, TypeError) as e:
            raise ValueError(f"not the offset of a micro-batch: {e}") from None
        raise StreamerError(
            f"the checkpoint has an offset of version {version}, expected at most {_VERSION}: "
            "start the newer streamer that wrote it"
        )

    def to_json(self) -> str:
        """Return the offset as JSON, for tasks."""
        return json.dumps(self.to_fields())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the offset that JSON describes (see `from_fields`)."""
        return cls.from_fields(json.loads(text))

    def to_start_fields(self, has_same_state: bool) -> dict[str, Any]:
        """Return the part of the offset, as JSON, from which another generation goes on.

        Args:
            has_same_state: whether it goes on with the open windows too, and so with what these
                aggregate for. The clock does not run backwards in any case.
        """
        fields: dict[str, Any] = {"data": self.data}
        if self.batch_time:
            fields["time"] = self.batch_time
        if has_same_state:
            fields["folded"] = self.aggregates_from
        return fields

    def batch_info(
        self, ends: Sequence[Offsets] = (), sources: tuple[str, ...] = ()
    ) -> MicroBatchInfo:
        """Return the facts about the micro-batch for shards.

        Args:
            ends: where it ends in Kafka, for each of the inputs.
            sources: the partitions or inputs that the clock waits for.
        """
        return MicroBatchInfo(
            self.batch_time,
            self.start_id,
            backlog=is_before(ends, self.backlog_ends),
            ended=self.ended,
            lag=self.lag,
            pressure=self.pressure,
            suspended=self.suspended,
            sources=sources,
        )


def is_before(ends: Sequence[Offsets], later: Sequence[Offsets]) -> bool:
    """Return whether anything lies between two positions in the Kafka inputs of a stream.

    What only one of them knows does not count: a partition has come meanwhile, or is gone.

    Args:
        ends: the one, for each of the inputs.
        later: the other.
    """
    return any(
        at < beyond.get(topic, {}).get(partition, at)
        for known, beyond in zip(ends, later, strict=False)
        for topic, partitions in known.items()
        for partition, at in partitions.items()
    )
