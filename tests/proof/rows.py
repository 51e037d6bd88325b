"""The rows of the proof, each a promise and the fault that might break it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.proof.runner import Run, Shape, Windows
from tests.proof.scenarios import checkpoint, events, kills
from tests.servers.kafka import Broker


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        name: as it is called on the command line.
        promise: what must hold.
        fault: what is done.
        run: does it; it returns the figures, or raises `ProofError`.
        windows: of the stream.
        shape: of its events.
    """

    name: str
    promise: str
    fault: str
    run: Callable[[Run], str]
    windows: Windows = Windows()
    shape: Shape = Shape()


EXACT = "every event is in exactly its windows, once"
ROWS: tuple[Row, ...] = (
    Row(
        "kill-at-write",
        EXACT + ", though a window was written and not committed",
        "kill -9 of the driver in the moment in which the output grows",
        kills.at_write,
    ),
    Row(
        "offset-log",
        "repaired, or refused by name; never lost without a word",
        "the newest file of Spark's offset log is cut in half",
        checkpoint.offset_log,
    ),
    Row(
        "shuffled",
        EXACT + "; late ones are dropped and counted",
        "events up to 6 s out of order, a tenth 10 s to 60 s late, hopping windows",
        events.shuffled,
        windows=Windows(size=10, every=5, lateness=3),
        shape=Shape(disorder=6 * 10**9, late=0.1),
    ),
    Row(
        "poison",
        "what has no usable time is dropped and counted; all else is untouched",
        "half JSON, invalid UTF-8, NaN, the year 9999, 900 kB",
        events.poison,
        shape=Shape(poison=0.1),
    ),
    Row(
        "silent-partition",
        "windows close by the clock of the others",
        "one partition of four has nothing",
        events.plain,
        shape=Shape(partitions=4, silent=frozenset({2})),
    ),
)
BY_NAME = {row.name: row for row in ROWS}


def prove(row: Row, seed: int, long: bool) -> str:
    """Run a row on parts of its own; return its figures.

    Raises:
        AssertionError: the promise was broken, or the row could not be run to its end.
    """
    with tempfile.TemporaryDirectory(prefix=f"proof-{row.name}-") as name:
        place = Path(name)
        with Broker(place / "broker") as one:
            return row.run(
                Run(place, seed, long, one, row.windows, row.shape),
            )
