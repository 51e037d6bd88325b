"""Statements that are run for each message of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.bloblang import Interpolation, Mapping
from streamer.errors import MessageError
from streamer.failure import Origin
from streamer.message import Batch, Execution
from streamer.spec import ParsedComponent
from streamer.sql.arguments import Arguments
from streamer.sql.database import Database, Session
from streamer.sql.drivers import Rows
from streamer.sql.errors import SqlError
from streamer.sql.statements import Select


class Query:
    """A statement with its arguments.

    Attributes:
        only_runs: whether its rows are left alone; None when that depends on whether it is last.
    """

    def __init__(
        self,
        text: str | Interpolation | Select,
        mapping: Mapping | None,
        *,
        takes_arguments: bool = True,
        only_runs: bool | None = None,
    ) -> None:
        self._text = text
        # The mapping is asked though nothing takes what it gives: it may fail.
        self._arguments = Arguments(mapping)
        self._takes_arguments = takes_arguments
        self.only_runs = only_runs

    def of(self, batch: Batch, index: int, ex: Execution) -> tuple[str | Select, list[Any]]:
        """Return the statement for one message, and its arguments.

        Raises:
            MessageError: they cannot be found.
        """
        arguments = self._arguments.of(batch, index, ex)
        text = self._text
        if isinstance(text, Interpolation):
            try:
                text = text.text_of(batch, index, ex)
            except MessageError as error:
                raise MessageError(f"query interpolation error: {error}") from None
        return text, arguments if self._takes_arguments else []


class Statements:
    """What is run for one message: one statement, or several in a transaction."""

    def __init__(self, database: Database, queries: Sequence[Query]) -> None:
        self._database = database
        last = len(queries) - 1
        self._queries = [
            (query, number < last if query.only_runs is None else query.only_runs)
            for number, query in enumerate(queries)
        ]

    def run(self, batch: Batch, index: int, ex: Execution) -> Rows | None:
        """Run them; return the rows of the last one whose rows are asked for, or None.

        Raises:
            MessageError: an argument cannot be found.
            SqlError: the database refuses.
        """
        asked = [(*query.of(batch, index, ex), only) for query, only in self._queries]
        database = self._database
        with database.session() if len(asked) == 1 else database.transaction() as session:
            return _run(session, asked)


def _run(on: Session, asked: Sequence[tuple[str | Select, list[Any], bool]]) -> Rows | None:
    found = None
    for text, arguments, only_runs in asked:
        if isinstance(text, Select):
            rows = on.ask(text.statement, **text.parameters(arguments))
        else:
            rows = on.run(text, arguments)
        if not only_runs:
            found = rows or Rows((), [])
    return found


class SqlLookup:
    """A processor that runs statements for each message."""

    def __init__(
        self, database: Database, queries: Sequence[Query], component: ParsedComponent
    ) -> None:
        self._database = database
        self._statements = Statements(database, queries)
        self._origin = Origin(component)

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Replace each message by the rows that were found, or leave it when none were asked."""
        made: Batch = []
        for index, message in enumerate(batch):
            try:
                self._database.begin(ex, self._origin)
                rows = self._statements.run(batch, index, ex)
            except (MessageError, SqlError) as error:
                made.append(self._origin.fail(message, str(error), ex))
                continue
            made.append(message if rows is None else message.with_doc(rows.objects()))
        return [made]
