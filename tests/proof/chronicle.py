"""How a stream was cut into micro-batches: read from Spark's log of offsets while it is written.

Spark keeps the newest of them only, so a thread looks all the time.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.proof.oracle import MicroBatch


class Chronicle:
    """The micro-batches of one checkpoint that reads one topic of Kafka."""

    def __init__(self, checkpoint: Path, topic: str) -> None:
        self._spark, self._topic = checkpoint / "spark", topic
        self._planned: dict[int, MicroBatch] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Look on until the block ends."""
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join(30)

    def committed(self) -> int:
        """Return the newest micro-batch that Spark has committed; -1 before the first."""
        names = [path.name for path in (self._spark / "commits").glob("*")]
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def planned(self) -> int:
        """Return the newest micro-batch that was planned."""
        self._look()
        return max(self._planned, default=-1)

    def taken(self) -> dict[int, int]:
        """Return where the committed micro-batches end, by partition."""
        self._look()
        newest = self._planned.get(self.committed())
        return dict(newest.ends) if newest else {}

    def time(self) -> int:
        """Return the time of the newest micro-batch that was committed, Unix ns; 0 for none."""
        self._look()
        newest = self._planned.get(self.committed())
        return newest.time if newest else 0

    def since(self, number: int) -> list[MicroBatch]:
        """Return what was planned after a micro-batch, in order, as far as it was seen."""
        self._look()
        return [one for at, one in sorted(self._planned.items()) if at > number]

    def micro_batches(self) -> list[MicroBatch]:
        """Return all that were committed, in order.

        Raises:
            RuntimeError: one went by unseen.
        """
        last = self.committed()
        self._look()
        missing = [number for number in range(last + 1) if number not in self._planned]
        if missing:
            raise RuntimeError(f"micro-batches {missing} went by unseen")
        return [self._planned[number] for number in range(last + 1)]

    def _run(self) -> None:
        while not self._over.wait(0.05):
            self._look()

    def _look(self) -> None:
        for path in sorted((self._spark / "offsets").glob("*")):
            if path.name.isdecimal():
                # What is half there is no plan, and Spark tidies up meanwhile.
                with suppress(ValueError, FileNotFoundError, IndexError):
                    self._planned[int(path.name)] = self._read(path)

    def _read(self, path: Path) -> MicroBatch:
        _, meta, own, *rest = path.read_text().splitlines()
        ours = json.loads(own)
        # Where Spark's own source reads Kafka, its offsets have a line of their own.
        kafka = ours.get("data", {}).get("kafka:at", {})
        if rest:
            kafka = {} if rest[0] == "-" else json.loads(rest[0])
        ends = self._ends(kafka)
        (waited,) = map(self._ends, ours.get("backlog_ends") or [{}])
        recorded = json.loads(meta)["batchTimestampMs"] * 10**6
        backlog = any(ends.get(partition, 0) < end for partition, end in waited.items())
        (parts, *_) = ours.get("pressure") or [[]]
        busy = tuple((began, ended) for began, ended in parts)
        return MicroBatch(ours["time"], ends, ours["start"], backlog, recorded, busy)

    def _ends(self, offsets: Mapping[str, Mapping[str, int]]) -> dict[int, int]:
        return {int(number): at for number, at in offsets.get(self._topic, {}).items()}
