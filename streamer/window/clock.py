"""The system clock of a stream: the micro-batch's time, which never runs backwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import orjson

from streamer.errors import StreamerError
from streamer.window.pressure import Pressure
from streamer.window.row import Kind, Row


@dataclass(frozen=True, slots=True)
class Reading:
    """What the driver says about one micro-batch; it is in Spark's log, so a replay reads the same.

    Attributes:
        t: the micro-batch's time, ns.
        start_id: differs for every start of the program.
        backlog: the input is still behind where it was at the start.
        lag: the input is behind, at any time: nothing is idle meanwhile.
        pressure: what the micro-batch before took of the stream's own time, where that may be long.
        stood: how much of the time since the micro-batch before the machine was suspended, or its
            clock was set forward by, ns: nothing is idle for it.
        ended: a bounded input has come to its end, and this micro-batch holds the last of it.
    """

    t: int
    start_id: str
    backlog: bool = False
    ended: bool = False
    lag: bool = False
    pressure: Pressure | None = None
    stood: int = 0

    def row(self, shard: int) -> Row:
        """Make the row that tells this to a shard."""
        fields = {"t": self.t, "start": self.start_id, "backlog": self.backlog}
        fields |= {"ended": self.ended, "lag": self.lag}
        if self.stood:
            fields["stood"] = self.stood
        if self.pressure is not None:
            fields["pressure"] = self.pressure.as_fields()
        return Row(shard, Kind.CLOCK, 0, 0, orjson.dumps(fields))

    @classmethod
    def of(cls, bodies: Iterable[bytes]) -> Reading:
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
        latest = max(readings, key=lambda reading: (reading.t, reading.start_id))
        return replace(
            latest,
            backlog=any(reading.backlog for reading in readings),
            ended=any(reading.ended for reading in readings),
            lag=any(reading.lag for reading in readings),
        )

    @classmethod
    def _parse(cls, body: bytes) -> Reading:
        try:
            found = orjson.loads(body)
            pressure = found.get("pressure")
            return cls(
                int(found["t"]),
                str(found["start"]),
                bool(found.get("backlog", False)),
                bool(found.get("ended", False)),
                bool(found.get("lag", False)),
                None if pressure is None else Pressure.of_fields(pressure),
                int(found.get("stood", 0)),
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

    def advance(self, reading: Reading) -> tuple[int, bool, SystemClock]:
        """Move to a micro-batch.

        Returns:
            T; whether windows that are overdue now may be so for back pressure, that is, whether
            the previous micro-batch of the same start could have closed them; and the clock after
            it.
        """
        now = reading.t if self.now is None else max(self.now, reading.t)
        running = self.now is not None and self.start_id == reading.start_id
        pressed = running and not self.backlog and not reading.backlog
        return now, pressed, SystemClock(now, reading.start_id, reading.backlog)
