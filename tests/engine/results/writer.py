"""A program that keeps results until it is killed: `python -m tests.engine.results.writer DIR SEED
N`.

N is for how many ns a file stays that no longer counts: 0 where nobody reads meanwhile.

What it has kept of a micro-batch it notes in DIR/commits, as Spark does; what is not noted there is
done again by the next one. It prints the number of each micro-batch that it begins.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from streamer.engine.results import result_store as stores

from .kept import RULES, Row, T, portion

KEYS = 5


def rows_of(batch: int) -> list[Row]:
    """Return the results of a micro-batch: windows of its own, and a revision of one of all."""
    own = [Row(f"k{(batch + n) % KEYS}", T + batch, b"%d" % batch) for n in range(batch % 3 + 1)]
    return [*own, Row("all", T, b"%d" % batch, emit="changes")]


def _write(directory: Path, seed: int, grace: int) -> None:
    # Small numbers, so that there is as much compaction as writing.
    stores.COMPACT_AFTER_FILES, stores.GRACE_NS = 3, grace  # type: ignore[misc]
    chance = random.Random(seed)
    commits = directory / "commits"
    done = int(commits.read_text().split()[-1]) if commits.exists() else -1
    apart = stores.run_in_thread if chance.random() < 0.7 else lambda work: work()
    kept = stores.ResultStore(
        directory / "results", RULES, afresh=done < 0, run_in_background=apart
    )
    for batch in range(done + 1, 10**9):
        print(batch, flush=True)
        kept.write(batch, [portion(rows_of(batch))] if batch % 4 else [], T)
        with commits.open("a") as out:
            out.write(f"{batch}\n")
            out.flush()
            os.fsync(out.fileno())


if __name__ == "__main__":
    _write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
