"""Figures that a config asks for itself, gathered in one task: counters, gauges and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from streamer.tally import Tally

Key = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name, and its labels with their values, sorted."""


class Figures:
    """What has been counted, set and timed.

    Attributes:
        counts: what counters have grown by.
        gauges: what gauges were set to last.
        times: how long things took.
        peaks: the largest values that were seen.
    """

    __slots__ = ("counts", "gauges", "times", "peaks")

    def __init__(self) -> None:
        """Begin with nothing."""
        self.counts: Counter[Key] = Counter()
        self.gauges: dict[Key, float] = {}
        self.times: dict[Key, Tally] = {}
        self.peaks: dict[Key, int] = {}

    def add(self, name: str, labels: Mapping[str, str], by: float) -> None:
        """Let a counter grow."""
        self.counts[_key(name, labels)] += by  # type: ignore[assignment]

    def set(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Set a gauge."""
        self.gauges[_key(name, labels)] = value

    def peak(self, name: str, labels: Mapping[str, str], value: int) -> None:
        """Keep a value, if it is the largest."""
        key = _key(name, labels)
        self.peaks[key] = max(self.peaks.get(key, value), value)

    def time(self, name: str, labels: Mapping[str, str], ns: int) -> None:
        """Add a time, ns."""
        self.times.setdefault(_key(name, labels), Tally()).timed(ns, 1)

    def join(self, later: Figures) -> None:
        """Add what others have gathered after this."""
        self.counts.update(later.counts)
        self.gauges.update(later.gauges)
        for key, value in later.peaks.items():
            self.peaks[key] = max(self.peaks.get(key, value), value)
        for key, tally in later.times.items():
            self.times.setdefault(key, Tally()).add(tally)


def _key(name: str, labels: Mapping[str, str]) -> Key:
    return name, tuple(sorted(labels.items()))
