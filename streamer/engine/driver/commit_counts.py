"""Figures of commits of tables, which their writers count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, Protocol, runtime_checkable

from streamer.connectors.tables.commit_record import CommitRecord

COMMITS: Final = "output_commits_total"
FILES: Final = "output_commit_files_total"
BYTES: Final = "output_commit_bytes_total"
ROWS: Final = "output_commit_rows_total"
RETRIES: Final = "output_commit_retries_total"
CONFLICTS: Final = "output_commit_conflicts_total"


@runtime_checkable
class CountingWriter(Protocol):
    """A writer that counts its commits; see `Writer`."""

    def take_counts(self, batch: int) -> Mapping[str, int]:
        """Return what a micro-batch that is written adds to metrics, by name.

        Each is returned once. It must not fail.
        """


def count_records(records: Iterable[CommitRecord]) -> Counter[str]:
    """Return what commits add to metrics, by name."""
    counts: Counter[str] = Counter()
    for one in records:
        counts[COMMITS] += 1
        counts[FILES] += one.files
        counts[BYTES] += one.size
        counts[ROWS] += max(one.rows, 0)
        counts[RETRIES] += one.retries
        # The library tries again when another program was faster.
        counts[CONFLICTS] += one.retries
    return counts
