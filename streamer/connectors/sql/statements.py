"""The statements that configs describe by their parts, INSERT and SELECT, as SQLAlchemy has them.

Names and conditions are taken as they are written, not quoted. Question marks in them stand for
arguments, whatever the database: SQLAlchemy puts what the driver wants in their place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.sql.errors import SqlError

if TYPE_CHECKING:
    from sqlalchemy import Executable, TextClause

_PLACEHOLDER: Final = re.compile(r"\?\??")


class InsertStatement:
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
        self._by_width: dict[int, Executable] = {}

    def statement_for(self, rows: Sequence[Sequence[Any]]) -> Executable:
        """Return the statement for rows, whose values are the parameters of `row`.

        Raises:
            SqlError: a row has not as many values as there are columns; refused.
        """
        width = len(self._columns) or max(map(len, rows), default=0)
        for row in rows:
            if len(row) != width:
                text = f"sql: expected {width} values in a row, got {len(row)}"
                raise SqlError(text, is_refused=True)
        if width not in self._by_width:
            self._by_width[width] = self._make_for_width(width)
        return self._by_width[width]

    def row_parameters(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return a row's parameters."""
        return {f"a{number}": value for number, value in enumerate(values)}

    def _make_for_width(self, width: int) -> Executable:
        from sqlalchemy import bindparam, column, quoted_name, table
        from sqlalchemy.types import NullType

        from streamer.connectors.sql.statement_affixes import AffixedInsert

        if not self._columns:
            values = ",".join(["?"] * width)
            parts = (self._prefix, "INSERT", *self._options, "INTO", self._table)
            text = " ".join(part for part in (*parts, f"VALUES ({values})", self._suffix) if part)
            return parametrised_sql(text)
        # NullType: the column says what becomes of a value.
        columns = [column(quoted_name(name, quote=False), NullType()) for name in self._columns]
        statement = AffixedInsert(
            table(quoted_name(self._table, quote=False), *columns),
            self._prefix.replace("??", "?"),
            self._suffix.replace("??", "?"),
        ).values(
            {
                one.key: bindparam(f"a{number}", type_=NullType())
                for number, one in enumerate(columns)
            }
        )
        return statement.prefix_with(*map(literal_sql, self._options))


class SelectStatement:
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
        from streamer.connectors.sql.statement_affixes import AffixedSelect

        prefix = parametrised_sql(self._prefix)
        where = parametrised_sql(self._where, _count_placeholders(self._prefix))
        suffix = parametrised_sql(
            self._suffix, _count_placeholders(self._prefix) + _count_placeholders(self._where)
        )
        made = AffixedSelect(*map(literal_sql, self._columns), prefix=prefix)
        made = made.select_from(literal_sql(self._table))
        if self._where:
            made = made.where(where)
        return made.suffix_with(suffix) if self._suffix else made

    def parameters(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """Return the statement's parameters.

        Raises:
            SqlError: there are more or fewer arguments than placeholders.
        """
        count = sum(map(_count_placeholders, (self._prefix, self._where, self._suffix)))
        if len(arguments) != count:
            raise SqlError(f"sql: expected {count} arguments, got {len(arguments)}")
        return {f"a{number}": value for number, value in enumerate(arguments)}


def literal_sql(text: str) -> TextClause:
    """Return SQL in which a question mark is one, and so are two."""
    from sqlalchemy import text as clause

    return clause(_escape_colons(text.replace("??", "?")))


def parametrised_sql(text: str, first: int = 0) -> TextClause:
    """Return SQL whose question marks are parameters `a…`, the first of the number given.

    Two question marks stand for one.
    """
    from sqlalchemy import bindparam
    from sqlalchemy import text as clause
    from sqlalchemy.types import NullType

    names: list[str] = []

    def name_parameter(match: re.Match[str]) -> str:
        if match[0] == "??":
            return "?"
        names.append(f"a{first + len(names)}")
        return f" :{names[-1]} "

    made = clause(_PLACEHOLDER.sub(name_parameter, _escape_colons(text)))
    return made.bindparams(*(bindparam(name, type_=NullType()) for name in names))


def _escape_colons(text: str) -> str:
    """Return SQL whose colons are no parameters."""
    return text.replace(":", "\\:")


def _count_placeholders(text: str) -> int:
    return sum(mark == "?" for mark in _PLACEHOLDER.findall(text))
