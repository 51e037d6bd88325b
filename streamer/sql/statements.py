"""The statements that configs describe by their parts: INSERT and SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamer.sql.drivers import Driver


@dataclass(frozen=True, slots=True)
class Insert:
    """Rows for a table.

    Attributes:
        driver: the kind of database.
        table: its name.
        columns: the names of the columns.
        prefix: what stands before INSERT.
        suffix: what stands after the values.
        options: words between INSERT and INTO.
    """

    driver: Driver
    table: str
    columns: Sequence[str]
    prefix: str = ""
    suffix: str = ""
    options: Sequence[str] = ()

    def statements(self, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, list[Any]]]:
        """Return statements with their arguments: one, unless it would have too many of them."""
        width = max((len(row) for row in rows), default=1) or 1
        most = max(self.driver.most_arguments // width, 1)
        for first in range(0, len(rows), most):
            yield self._statement(rows[first : first + most])

    def _statement(self, rows: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
        values = ",".join(f"({','.join('?' * len(row))})" for row in rows)
        columns = f"({','.join(self.columns)})" if self.columns else ""
        parts = (self.prefix, "INSERT", *self.options, "INTO", self.table, columns)
        text = " ".join(part for part in (*parts, "VALUES", values, self.suffix) if part)
        return self.driver.placeholders(text), [value for row in rows for value in row]


@dataclass(frozen=True, slots=True)
class Select:
    """Rows of a table.

    Attributes:
        driver: the kind of database.
        table: its name.
        columns: what is asked of each row.
        where: which rows, with question marks for arguments; empty for all.
        prefix: what stands before SELECT.
        suffix: what stands at the end.
    """

    driver: Driver
    table: str
    columns: Sequence[str]
    where: str = ""
    prefix: str = ""
    suffix: str = ""

    @property
    def text(self) -> str:
        """The statement."""
        where = f"WHERE {self.where}" if self.where else ""
        parts = (self.prefix, "SELECT", ", ".join(self.columns), "FROM", self.table, where)
        return self.driver.placeholders(" ".join(part for part in (*parts, self.suffix) if part))
