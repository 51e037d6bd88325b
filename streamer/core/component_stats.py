"""Statistics of a component in one task: messages, batches and latencies.

Times are counted in buckets, so that those of many workers can be brought together: 16 to each
doubling, which places a quantile within about three hundredths of its value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

FINE_SHIFT: Final = 6
MAX_FINE_STEPS: Final = 4_096

_MANTISSA_BITS: Final = 5
_MANTISSA_MASK: Final = (1 << _MANTISSA_BITS) - 1


class ComponentStats:
    """The numbers of messages that one component received and sent.

    Attributes:
        received: messages that came in.
        batches_received: batches that came in.
        sent: messages that came out.
        batches_sent: batches that came out.
        elapsed: nanoseconds that all took together.
        fine: how many batches took so long, by their time in steps of 2 ** `FINE_SHIFT` ns: those
            that are not sorted into buckets yet.
    """

    __slots__ = (
        *("received", "batches_received", "sent", "batches_sent"),
        *("elapsed", "fine", "_buckets"),
    )

    def __init__(self) -> None:
        """Begin with nothing."""
        self.received = self.batches_received = self.sent = self.batches_sent = 0
        self.elapsed = 0
        self.fine: dict[int, int] = {}
        self._buckets: dict[int, int] = {}

    def add_latency(self, elapsed: int, batches: int) -> None:
        """Add batches that took so many nanoseconds together; each counts as a like part."""
        self.elapsed += elapsed
        bucket = bucket_of(elapsed // batches)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + batches

    @property
    def buckets(self) -> dict[int, int]:
        """Numbers of batches by latency bucket."""
        self.flush_fine()
        return self._buckets

    def flush_fine(self) -> None:
        """Sort times into buckets."""
        for time, number in self.fine.items():
            bucket = bucket_of((time << FINE_SHIFT) + (1 << FINE_SHIFT >> 1))
            self._buckets[bucket] = self._buckets.get(bucket, 0) + number
        self.fine.clear()

    def add(self, other: ComponentStats) -> None:
        """Add what another one has counted."""
        self.received += other.received
        self.batches_received += other.batches_received
        self.sent += other.sent
        self.batches_sent += other.batches_sent
        self.elapsed += other.elapsed
        for bucket, number in other.buckets.items():
            self._buckets[bucket] = self._buckets.get(bucket, 0) + number

    def iter_counts(self) -> Iterator[tuple[str, int]]:
        """Return what there is to count, by the last part of its metric's name."""
        counts = {
            "received": self.received,
            "batch_received": self.batches_received,
            "sent": self.sent,
            "batch_sent": self.batches_sent,
        }
        return ((name, number) for name, number in counts.items() if number)


def bucket_of(ns: int) -> int:
    """Return the bucket of a time; the shortest times share one."""
    ns = max(ns, 1 << (_MANTISSA_BITS - 1))
    shift = ns.bit_length() - _MANTISSA_BITS
    return shift << _MANTISSA_BITS | ns >> shift


def bucket_middle(bucket: int) -> float:
    """Return the time that stands for a bucket, ns."""
    return ((bucket & _MANTISSA_MASK) + 0.5) * (1 << (bucket >> _MANTISSA_BITS))
