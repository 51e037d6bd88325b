"""`cassandra`: "executes a find query and creates a message for each row received"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.cassandra.client_fields import (
    CLIENT_FIELDS,
    PACKAGES,
    QUERY,
    client_problems,
)
from streamer.connectors.cassandra.session import CassandraError, CassandraSession
from streamer.connectors.cassandra.values import dump_row
from streamer.connectors.spool.blocks import pack_each
from streamer.connectors.spool.pointer import read_safe
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.core.message import NO_META
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

_PAGING_STATE: Final = "paging_state"
_PAGE_ROWS: Final = 1_000

SPEC: Final = Spec(
    Kind.INPUT,
    "cassandra",
    "Runs a query of Cassandra, and makes a message of each row.",
    description=(
        "The driver runs the query once, page by page. A page is safe on its disk before its rows "
        "are processed; after the last one the input has ended. A query that was interrupted goes "
        "on with the page behind it. ScyllaDB speaks the same protocol.\n"
        "\n"
        "A row is an object by the names of its columns. A column without a value is `null`. "
        "Blobs are Base64, times are texts of RFC 3339, and decimals, UUIDs and addresses are "
        "texts."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(
            QUERY,
            "string",
            "The query.",
            access=Access.REMOTE,
            examples=("SELECT * FROM shop.orders",),
        ),
        AUTO_REPLAY_NACKS_FIELD,
    ),
    check=client_problems,
    begin={"query": "SELECT * FROM shop.orders"},
    examples=(
        Example(
            "All orders",
            "input:\n"
            "  cassandra:\n"
            "    addresses: [localhost:9042]\n"
            "    timeout: 10s\n"
            "    query: SELECT * FROM shop.orders\n",
        ),
    ),
    categories=("Services",),
    delivery="exactly once onto the driver's disk, page by page",
    limits="tested on Cassandra 5.0",
    requires=PACKAGES,
)


@dataclass(frozen=True)
class CassandraInput:
    """An input before it is opened.

    Attributes:
        parsed: its fields.
        labels: of its log lines and counts.
    """

    parsed: ParsedFields
    labels: dict[str, str]

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read rows; return the source of what the spool holds."""
        if read_safe(context.directory).closed:
            return SpoolSource.for_input(context)

        def session(one: Session) -> None:
            cassandra = CassandraSession(self.parsed)
            try:
                cassandra.open()
                one.set_connected()
                self._run(one, cassandra)
            except CassandraError as error:
                raise ConnectionLostError(str(error)) from None
            finally:
                cassandra.close()

        return start_sessions(context, "cassandra", self.labels, session)

    def _run(self, session: Session, cassandra: CassandraSession) -> None:
        from cassandra.query import SimpleStatement

        statement = SimpleStatement(self.parsed[QUERY], fetch_size=_PAGE_ROWS)
        mark = session.store.mark
        state = bytes.fromhex(mark[_PAGING_STATE]) if mark else None
        while not session.context.stopping:
            page = cassandra.execute(statement, paging_state=state)
            state = page.paging_state
            mark = {_PAGING_STATE: state.hex()} if state else None
            rows = [dump_row(row) for row in page.current_rows]
            if rows and not session.write([pack_each(rows, NO_META)], mark):
                return
            if not state:
                return

    def probe(self) -> str:
        """Check that the cluster answers."""
        return CassandraSession(self.parsed).probe()


def build(parsed: ParsedFields, context: BuildContext) -> Any:
    """Take the fields; the query is run once the input is opened."""
    return CassandraInput(parsed, ComponentRef(context.component).fields)
