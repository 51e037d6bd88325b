"""A position in the history of a table: a version, one of its files, and a row of that."""

from __future__ import annotations

from typing import NamedTuple

from streamer.connectors.tables.table_reader import NO_VERSION, TableStep
from streamer.sdk.input.replayable import Offset


class TablePosition(NamedTuple):
    """The place of the next row.

    Attributes:
        version: the version that is read.
        is_snapshot: whether all rows of the version are read, or those that it adds.
        is_done: whether all of the version is read; then the rest is zero.
        group: the list of files, by number.
        file: the file in this list, by number.
        row: the row of the file, by number.
    """

    version: int = NO_VERSION
    is_snapshot: bool = False
    is_done: bool = False
    group: int = 0
    file: int = 0
    row: int = 0

    @property
    def step(self) -> TableStep:
        """The version, and how it is read."""
        return TableStep(self.version, self.is_snapshot)

    def to_offset(self) -> Offset:
        """Return the position as JSON.

        Example:
            >>> TablePosition(7, is_done=True).to_offset()
            {'version': 7, 'done': True}
        """
        if self.is_done:
            return {"version": self.version, "done": True}
        return {
            "version": self.version,
            "snapshot": self.is_snapshot,
            "group": self.group,
            "file": self.file,
            "row": self.row,
        }

    @classmethod
    def from_offset(cls, offset: Offset) -> TablePosition:
        """Return the position that JSON has."""
        if offset.get("done"):
            return after_version(offset["version"])
        return cls(
            offset["version"],
            offset["snapshot"],
            False,
            offset["group"],
            offset["file"],
            offset["row"],
        )


def after_version(version: int) -> TablePosition:
    """Return the position behind all of a version."""
    return TablePosition(version, is_done=True)


def at_snapshot(version: int) -> TablePosition:
    """Return the position before all rows that a table has at a version."""
    return TablePosition(version, is_snapshot=True)
