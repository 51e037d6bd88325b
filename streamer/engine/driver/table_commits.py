"""The newest commits of the tables of a stream, for whoever looks at it while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from streamer.connectors.tables.commit_record import CommitRecord
from streamer.core.timestamps import format_rfc3339

SHOWN_COMMITS = 5
_NS_PER_MS = 1_000_000


class TableCommits(NamedTuple):
    """The newest commits of one table.

    Attributes:
        table: where it is, in words.
        records: the commits, the newest first, as they were after the newest micro-batch.
        retries: how often commits of this run were tried again, for any reason.
        conflicts: how often of these another program was faster.
    """

    table: str
    records: Sequence[CommitRecord]
    retries: int
    conflicts: int

    def as_document(self) -> dict[str, Any]:
        """Return the document of the API."""
        return {
            "table": self.table,
            "retries": self.retries,
            "conflicts": self.conflicts,
            "commits": [
                {
                    # Identifiers of Iceberg's snapshots have more digits than JavaScript's numbers.
                    "version": str(one.version),
                    "at": format_rfc3339(one.time_ms * _NS_PER_MS),
                    "operation": one.operation,
                    "rows": None if one.rows < 0 else one.rows,
                    "files": one.files,
                    "bytes": one.size,
                    "micro_batch": None if one.batch < 0 else one.batch,
                    "own": bool(one.writer),
                }
                for one in self.records
            ],
        }


@runtime_checkable
class CommittingWriter(Protocol):
    """A writer of a table; see `Writer`."""

    def commits(self) -> TableCommits | None:
        """Return the newest commits; None before the first. It reads nothing."""


def describe_tables(
    writers: Iterable[object], places: Iterable[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return the newest commits of tables, as the API has them; it reads nothing.

    Args:
        writers: of what the driver writes.
        places: the path and the label of the output of each.
    """
    documents = []
    for writer, (path, label) in zip(writers, places, strict=False):
        if isinstance(writer, CommittingWriter) and (commits := writer.commits()):
            documents.append({"path": path, "label": label, **commits.as_document()})
    return documents


@runtime_checkable
class AheadWriter(Protocol):
    """A writer of what may have a micro-batch that the checkpoint has not; see `Writer`."""

    def find_ahead(self, batch: int) -> str:
        """Return which table has a micro-batch already, in words; empty for none.

        A table whose rows take their own places when they come again counts for none, nor does one
        that cannot be reached.
        """
