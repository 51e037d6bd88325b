"""The system clock of a stream: the micro-batch's time, which never runs backwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import orjson

from streamer.core.errors import StreamerError
from streamer.window.contract.shuffle_row import RowKind, ShuffleRow
from streamer.window.settings.back_pressure import BackPressure


@dataclass(frozen=True, slots=True)
class MicroBatchInfo:
    """Facts about one micro-batch from the driver; a replay reads the same ones in Spark's log.

    Attributes:
        batch_time: the micro-batch's time, ns.
        start_id: differs for every start of the program.
        backlog: the input is still behind where it was at the start.
        lag: the input is behind, at any time: nothing is idle meanwhile.
        pressure: what the micro-batch before took of the stream's own time, where that may be long.
        suspended: how much of the time since the micro-batch before the machine was suspended, or
            its clock was set forward by, ns: nothing is idle for it.
        ended: a bounded input has come to its end, and this micro-batch holds the last of it.
    """

    batch_time: int
    start_id: str
    backlog: bool = False
    ended: bool = False
    lag: bool = False
    pressure: BackPressure | None = None
    suspended: int = 0

    def to_row(self, shard: int) -> ShuffleRow:
        """Make the row that tells this to a shard."""
        fields = {"t": self.batch_time, "start": self.start_id, "backlog": self.backlog}
        fields |= {"ended": self.ended, "lag": self.lag}
        if self.suspended:
            fields["stood"] = self.suspended
        if self.pressure is not None:
            fields["pressure"] = self.pressure.to_fields()
        return ShuffleRow(shard, RowKind.CLOCK, 0, 0, orjson.dumps(fields))

    @classmethod
    def from_rows(cls, bodies: Iterable[bytes]) -> MicroBatchInfo:
        """Read the clock rows of one micro-batch; several say the same, or the latest counts.

        Raises:
            StreamerError: there is none, or one that cannot be read.
        """
        readings = [cls._parse(body) for body in bodies]
        if not readings:
            raise StreamerError(
                "a micro-batch reached a window shard without a clock row: this is a bug in the "
                "program; the micro-batch is not lost, a restart replays it"
            )
        latest = max(readings, key=lambda reading: (reading.batch_time, reading.start_id))
        return replace(
            latest,
            backlog=any(reading.backlog for reading in readings),
            ended=any(reading.ended for reading in readings),
            lag=any(reading.lag for reading in readings),
        )

    @classmethod
    def _parse(cls, body: bytes) -> MicroBatchInfo:
        try:
            fields = orjson.loads(body)
            pressure = fields.get("pressure")
            return cls(
                int(fields["t"]),
                str(fields["start"]),
                bool(fields.get("backlog", False)),
                bool(fields.get("ended", False)),
                bool(fields.get("lag", False)),
                None if pressure is None else BackPressure.from_fields(pressure),
                int(fields.get("stood", 0)),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise StreamerError(f"a window shard got a clock row it cannot read: {e!r}") from None


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The clock as a shard keeps it between micro-batches.

    Attributes:
        now: T, ns; None before the first micro-batch.
        start_id: the start that the last micro-batch belonged to.
        backlog: whether the last micro-batch was still working off a backlog.
    """

    now: int | None = None
    start_id: str = ""
    backlog: bool = False

    def advance(self, info: MicroBatchInfo) -> tuple[int, bool, SystemClock]:
        """Move to a micro-batch.

        Returns:
            T; whether windows that are overdue now may be so for back pressure, that is, whether
            the previous micro-batch of the same start could have closed them; and the clock after
            it.
        """
        now = info.batch_time if self.now is None else max(self.now, info.batch_time)
        running = self.now is not None and self.start_id == info.start_id
        pressed = running and not self.backlog and not info.backlog
        return now, pressed, SystemClock(now, info.start_id, info.backlog)
