"""The statements that configs describe by their parts, INSERT and SELECT, as SQLAlchemy has them.

Names and conditions are taken as they are written, not quoted. Question marks in them stand for
arguments, whatever the database: SQLAlchemy puts what the driver wants in their place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from streamer.sql.errors import SqlError

if TYPE_CHECKING:
    from sqlalchemy import Executable, TextClause

_MARK: Final = re.compile(r"\?\??")


class Insert:
    """Rows for a table, by the fields of a component."""

    def __init__(
        self,
        table: str,
        columns: Sequence[str],
        prefix: str = "",
        suffix: str = "",
        options: Sequence[str] = (),
    ) -> None:
        """Take the parts.

        Args:
            table: its name.
            columns: the names of the columns; empty for all of them.
            prefix: what stands before INSERT.
            suffix: what stands after the values.
            options: words between INSERT and INTO.
        """
        self._table, self._columns, self._options = table, list(columns), options
        self._prefix, self._suffix = prefix, suffix
        self._made: dict[int, Executable] = {}

    def statement(self, rows: Sequence[Sequence[Any]]) -> Executable:
        """Return the statement for rows, whose values are the parameters of `row`.

        Raises:
            SqlError: a row has not as many values as there are columns.
        """
        width = len(self._columns) or max(map(len, rows), default=0)
        for row in rows:
            if len(row) != width:
                raise SqlError(f"sql: expected {width} values in a row, got {len(row)}")
        if width not in self._made:
            self._made[width] = self._of_width(width)
        return self._made[width]

    def row(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return a row's parameters."""
        return {f"a{number}": value for number, value in enumerate(values)}

    def _of_width(self, width: int) -> Executable:
        from sqlalchemy import bindparam, column, quoted_name, table
        from sqlalchemy.types import NullType

        from streamer.sql.framed import FramedInsert

        if not self._columns:
            values = ",".join(["?"] * width)
            parts = (self._prefix, "INSERT", *self._options, "INTO", self._table)
            text = " ".join(part for part in (*parts, f"VALUES ({values})", self._suffix) if part)
            return marked(text)
        # NullType: the column says what becomes of a value.
        columns = [column(quoted_name(name, quote=False), NullType()) for name in self._columns]
        statement = FramedInsert(
            table(quoted_name(self._table, quote=False), *columns),
            self._prefix.replace("??", "?"),
            self._suffix.replace("??", "?"),
        ).values(
            {
                one.key: bindparam(f"a{number}", type_=NullType())
                for number, one in enumerate(columns)
            }
        )
        return statement.prefix_with(*map(literal, self._options))


class Select:
    """Rows of a table, by the fields of a component."""

    def __init__(
        self,
        table: str,
        columns: Sequence[str],
        where: str = "",
        prefix: str = "",
        suffix: str = "",
    ) -> None:
        """Take the parts.

        Args:
            table: its name.
            columns: what is asked of each row.
            where: which rows, with question marks for arguments; empty for all.
            prefix: what stands before SELECT.
            suffix: what stands at the end.
        """
        self._table, self._columns, self._where = table, columns, where
        self._prefix, self._suffix = prefix, suffix

    @cached_property
    def statement(self) -> Executable:
        """The statement; its parameters are called `a0`, `a1` and so on."""
        from streamer.sql.framed import FramedSelect

        prefix = marked(self._prefix)
        where = marked(self._where, _marks(self._prefix))
        suffix = marked(self._suffix, _marks(self._prefix) + _marks(self._where))
        made = FramedSelect(*map(literal, self._columns), prefix=prefix)
        made = made.select_from(literal(self._table))
        if self._where:
            made = made.where(where)
        return made.suffix_with(suffix) if self._suffix else made

    def parameters(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """Return the statement's parameters.

        Raises:
            SqlError: there are more or fewer arguments than placeholders.
        """
        wanted = sum(map(_marks, (self._prefix, self._where, self._suffix)))
        if len(arguments) != wanted:
            raise SqlError(f"sql: expected {wanted} arguments, got {len(arguments)}")
        return {f"a{number}": value for number, value in enumerate(arguments)}


def literal(text: str) -> TextClause:
    """Return SQL in which a question mark is one, and so are two."""
    from sqlalchemy import text as clause

    return clause(_escaped(text.replace("??", "?")))


def marked(text: str, first: int = 0) -> TextClause:
    """Return SQL whose question marks are parameters `a…`, the first of the number given.

    Two question marks stand for one.
    """
    from sqlalchemy import bindparam
    from sqlalchemy import text as clause
    from sqlalchemy.types import NullType

    names: list[str] = []

    def named(found: re.Match[str]) -> str:
        if found[0] == "??":
            return "?"
        names.append(f"a{first + len(names)}")
        return f" :{names[-1]} "

    made = clause(_MARK.sub(named, _escaped(text)))
    return made.bindparams(*(bindparam(name, type_=NullType()) for name in names))


def _escaped(text: str) -> str:
    """Return SQL whose colons are no parameters."""
    return text.replace(":", "\\:")


def _marks(text: str) -> int:
    return sum(found == "?" for found in _MARK.findall(text))
