"""Statements that are run for each message of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.bloblang import Interpolation, Mapping
from streamer.connectors.sql.arguments import ArgumentsMapping
from streamer.connectors.sql.database import Database, Session
from streamer.connectors.sql.drivers import QueryRows
from streamer.connectors.sql.errors import SqlError
from streamer.connectors.sql.statements import SelectStatement
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import interpolate, query_bool
from streamer.sdk.spec import ParsedComponent


class StatementTemplate:
    """A statement with its arguments.

    Attributes:
        discards_rows: whether its rows are left alone; None when that depends on whether it is
            last.
        condition: says whether a message is for this statement; None where all are.
    """

    def __init__(
        self,
        text: str | Interpolation | SelectStatement,
        mapping: Mapping | None,
        *,
        takes_arguments: bool = True,
        only_runs: bool | None = None,
        condition: Mapping | None = None,
    ) -> None:
        self._text = text
        # The mapping is asked though nothing takes what it gives: it may fail.
        self._arguments = ArgumentsMapping(mapping)
        self._has_arguments = takes_arguments
        self.discards_rows = only_runs
        self.condition = condition

    def for_message(
        self, batch: Batch, index: int, ex: Execution
    ) -> tuple[str | SelectStatement, list[Any]]:
        """Return the statement for one message, and its arguments.

        Raises:
            MessageError: they cannot be found.
        """
        arguments = self._arguments.evaluate(batch, index, ex)
        text = self._text
        if isinstance(text, Interpolation):
            text = interpolate("query", text, batch, index, ex)
        return text, arguments if self._has_arguments else []


class StatementSequence:
    """The statements for one message: one, or several in a transaction."""

    def __init__(self, database: Database, queries: Sequence[StatementTemplate]) -> None:
        self._database = database
        last = len(queries) - 1
        self._queries = [
            (query, number < last if query.discards_rows is None else query.discards_rows)
            for number, query in enumerate(queries)
        ]
        self._has_conditions = any(query.condition is not None for query in queries)

    def run(self, batch: Batch, index: int, ex: Execution) -> QueryRows | None:
        """Run the statements; return the rows of the last one whose rows are wanted, or None.

        Raises:
            MessageError: an argument cannot be found.
            SqlError: the database refuses.
        """
        queries = self._choose(batch, index, ex) if self._has_conditions else self._queries
        statements = [(*query.for_message(batch, index, ex), only) for query, only in queries]
        if not statements:
            return None
        database = self._database
        with database.session() if len(statements) == 1 else database.transaction() as session:
            return _run_statements(session, statements)

    def _choose(
        self, batch: Batch, index: int, ex: Execution
    ) -> list[tuple[StatementTemplate, bool]]:
        """Return the first statement that takes a message, in a list; an empty one for none."""
        for query, only_runs in self._queries:
            try:
                if query.condition is None or query_bool(query.condition, batch, index, ex):
                    return [(query, only_runs)]
            except MessageError as error:
                raise MessageError(f"when condition evaluation failed: {error}") from None
        return []


def _run_statements(
    on: Session, statements: Sequence[tuple[str | SelectStatement, list[Any], bool]]
) -> QueryRows | None:
    result = None
    for text, arguments, only_runs in statements:
        if isinstance(text, SelectStatement):
            rows = on.execute(text.statement, **text.parameters(arguments))
        else:
            rows = on.run(text, arguments)
        if not only_runs:
            result = rows or QueryRows((), [])
    return result


class SqlProcessor:
    """A processor that runs statements for each message."""

    def __init__(
        self, database: Database, queries: Sequence[StatementTemplate], component: ParsedComponent
    ) -> None:
        self._database = database
        self._statements = StatementSequence(database, queries)
        self._origin = ComponentRef(component)

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
