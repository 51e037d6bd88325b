"""Inputs that run a query once: every row is a message, and then they have ended.

The rows go into the spool as they come. A query that was not read to its end when the program
stopped is run again at the next start, from its begin: nobody says that it would give the same rows
in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamer.bloblang import Mapping
from streamer.connectors.spool.blocks import pack_each
from streamer.connectors.spool.pointer import read_safe
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.sql.arguments import ArgumentsMapping
from streamer.connectors.sql.database_fields import own_database
from streamer.connectors.sql.errors import SqlError
from streamer.connectors.sql.output_base import probe_database
from streamer.connectors.sql.statements import SelectStatement
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json_each
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import ParsedFields
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

AUTO_REPLAY_NACKS: Final = AUTO_REPLAY_NACKS_FIELD

_FETCH_ROWS: Final = 1000


@dataclass(frozen=True)
class QueryInput:
    """An input before it is opened.

    Attributes:
        name: its name.
        parsed: its fields.
        query: the query.
        mapping: gives the query's arguments, or None.
        takes_arguments: whether the query has a place for them.
        origin: who speaks in the log.
    """

    name: str
    parsed: ParsedFields
    query: str | SelectStatement
    mapping: Mapping | None
    takes_arguments: bool
    origin: ComponentRef

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read rows; return the source of what the spool holds.

        Raises:
            StreamerError: the mapping of the arguments fails.
        """
        if read_safe(context.directory).closed:
            return SpoolSource.for_input(context)
        database = own_database(self.parsed)
        ex = Execution(_clock_ns, context.log, context.count)
        arguments = self._evaluate_arguments(ex)

        def session(one: Session) -> None:
            try:
                database.begin(ex, self.origin)
                one.set_connected()
                for rows in database.stream(self.query, arguments, _FETCH_ROWS):
                    raws = dump_json_each(rows.objects())
                    if context.stopping or not one.write([pack_each(raws, {})]):
                        return
            except SqlError as error:
                raise ConnectionLostError(str(error)) from None
            finally:
                database.close()

        return start_sessions(context, self.name, self.origin.fields, session)

    def probe(self) -> str:
        """Check that the database answers."""
        return probe_database(own_database(self.parsed))

    def _evaluate_arguments(self, ex: Execution) -> list[object]:
        if self.mapping is None or not self.takes_arguments:
            return []
        try:
            return ArgumentsMapping(self.mapping).evaluate([Message(b"")], 0, ex)
        except MessageError as error:
            raise StreamerError(f"{self.name}: args_mapping: {error}") from None


def _clock_ns() -> int:
    from time import time_ns

    return time_ns()
