"""A micro-batch on a cluster, simulated: how far more workers go. `python -m tests.bench.sizing`

What one machine cannot have is computed: a driver that hands out tasks one after another, tasks of
stage 1 of equal size, a shuffle over a network, tasks of stage 2 as large as their shard's keys
make them, and a driver that writes down what the micro-batch did. The constants are those that
`python -m tests.bench stages` and `cluster` measure; `cluster` also says how far what is predicted
here is from what it sees.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamer.sdk.input.replayable import Limit
from tests.bench import report

WORKERS = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Constants:
    """What a job costs, measured on one machine; by default the traffic lights, folded.

    Attributes:
        first: CPU seconds of stage 1 for a million events.
        second: the same of stage 2.
        micro_batch: CPU seconds of a micro-batch, however much it holds and whoever does it.
        task: CPU seconds of a task beside its events, of executor, Python and driver together.
        serial: seconds of a micro-batch in which only the driver does something.
        dispatch: seconds of the driver for each task, one after another.
        shuffled: bytes of an event in the shuffle, on many workers.
    """

    first: float
    second: float
    micro_batch: float
    task: float
    serial: float
    dispatch: float
    shuffled: float


MEASURED = Constants(1.4, 0.2, 0.38, 0.12, 0.25, 0.01, 6.5)
"""The first two by `stages`; the next two from clusters of one and four workers, whose JVMs were
still warming up and had other work beside them: they are rather too high. For workers that have a
core each: with two on a core, an event takes a third more, whatever these are."""

TOLERANCE = 0.15
"""How far a prediction of CPU may be from what is measured, as a share of it."""


@dataclass(frozen=True)
class Load:
    """What a cluster gets.

    Attributes:
        keys: how many there are.
        skew: the exponent of Zipf's law by which events fall on them; 0 for evenly.
        bandwidth: bytes a second into a worker.
        fetch: seconds to ask another worker for a part of the shuffle.
        most: events of a micro-batch; None for as many as the product takes when it is behind.
        cores: that run at once, where the workers share a machine; None for all.
    """

    keys: int = 100_000
    skew: float = 0.0
    bandwidth: float = 125e6
    fetch: float = 0.5e-3
    most: int | None = None
    cores: int | None = None

    def events(self, workers: int) -> int:
        """Return how many events a micro-batch has."""
        # Spark says two cores at least.
        return self.most or Limit().share_of(max(workers, 2)).messages


EVEN = "100,000 keys, 1 Gbit/s"
CASES = {
    EVEN: Load(),
    "1,000 keys": Load(keys=1_000),
    "100,000 keys, the first has 1 % (Zipf, 0.75)": Load(skew=0.75),
    "100,000 keys, the first has 8 % (Zipf, 1)": Load(skew=1.0),
    "100 Mbit/s": Load(bandwidth=12.5e6),
    "a million events a micro-batch, as from Kafka": Load(most=1_000_000),
}


def cpu_per_million(c: Constants, load: Load, workers: int) -> float:
    """Return the CPU seconds of all processes for a million events."""
    # One task reads for each core, and one keeps each shard.
    fixed = c.micro_batch + c.task * 2 * workers
    return c.first + c.second + fixed / load.events(workers) * 1e6


def shares(shards: int, keys: int, skew: float, seed: int = 1) -> Sequence[float]:
    """Return which share of the events each shard gets, its keys spread by chance."""
    weights = np.arange(1, keys + 1, dtype=float) ** -skew
    weights /= weights.sum()
    places = np.random.default_rng(seed).integers(0, shards, keys)
    found: list[float] = np.bincount(places, weights, shards).tolist()
    return found


def stage(works: Sequence[float], dispatch: float, cores: int) -> float:
    """Return the seconds until all tasks of a stage are done.

    Args:
        works: seconds of each task, in the order in which they are handed out.
        dispatch: seconds between two of them.
        cores: how many run at once.
    """
    free = [0.0] * min(cores, len(works))
    ended = 0.0
    for number, work in enumerate(works):
        began = max(heapq.heappop(free), (number + 1) * dispatch)
        heapq.heappush(free, began + work)
        ended = max(ended, began + work)
    return ended


def seconds(c: Constants, load: Load, workers: int) -> float:
    """Return the seconds of a micro-batch on so many workers of one core, with as many shards."""
    cores = min(workers, load.cores or workers)
    events = load.events(workers)
    millions = events / 1e6
    # A task's share of what is not events: half of it is the executor's and Python's.
    own = c.task / 2
    reading = [c.first * millions / workers + own] * workers
    moved = c.shuffled * events * (1 - 1 / workers)
    waits = moved / workers / load.bandwidth + load.fetch * math.sqrt(workers - 1)
    keeping = [
        c.second * millions * share + own + waits for share in shares(workers, load.keys, load.skew)
    ]
    return c.serial + stage(reading, c.dispatch, cores) + stage(keeping, c.dispatch, cores)


def rate(c: Constants, load: Load, workers: int) -> float:
    """Return the events a second."""
    return load.events(workers) / seconds(c, load, workers)


def efficiency(c: Constants, load: Load, workers: int) -> float:
    """Return the events a second of a core, as a share of those of a single worker."""
    return rate(c, load, workers) / rate(c, load, 1) / workers


def main() -> None:
    """Print what many workers would reach, by the constants that were measured."""
    report.heading("events a second of a core, as a share of those of a single worker")
    print(f"  {'workers':<46}" + "".join(f"{count:>8}" for count in WORKERS))
    for name, load in CASES.items():
        row = "".join(f"{efficiency(MEASURED, load, count):>8.2f}" for count in WORKERS)
        print(f"  {name:<46}{row}")
    even = CASES[EVEN]
    rates = "".join(f"{rate(MEASURED, even, count) / 1e6:>8.2f}" for count in WORKERS)
    print(f"  {f'M events/s, {EVEN}':<46}{rates}")
    cpu = "".join(f"{cpu_per_million(MEASURED, even, count):>8.2f}" for count in WORKERS)
    print(f"  {'CPU seconds for a million events':<46}{cpu}")


if __name__ == "__main__":
    main()
