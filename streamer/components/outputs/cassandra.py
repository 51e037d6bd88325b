"""`cassandra`: "runs a query against a Cassandra database for each message"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamer.bloblang import compile_mapping
from streamer.connectors.cassandra.client_fields import (
    CLIENT_FIELDS,
    PACKAGES,
    QUERY,
    client_problems,
)
from streamer.connectors.cassandra.session import CassandraError, CassandraSession
from streamer.connectors.cassandra.values import bind_values
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import query_value
from streamer.sdk.output.protocols import (
    MAX_IN_FLIGHT,
    NotConnectedError,
    Output,
    SendError,
    max_in_flight_field,
)
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

ARGS_MAPPING: Final = "args_mapping"
CONSISTENCY: Final = "consistency"
LOGGED_BATCH: Final = "logged_batch"

_LEVELS: Final = (
    *("ANY", "ONE", "TWO", "THREE", "QUORUM", "ALL"),
    *("LOCAL_QUORUM", "EACH_QUORUM", "LOCAL_ONE"),
)


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from client_problems(parsed)
    yield from batching_problems(parsed)


SPEC: Final = Spec(
    Kind.OUTPUT,
    "cassandra",
    "Runs a statement of Cassandra for each message.",
    description=(
        "The messages of a batch are one batch of Cassandra. One that the server refuses is sent "
        "in halves, until the message is known that is to blame, which is rejected alone. A batch "
        "whose answer was lost is sent again: an `INSERT` writes the row of its primary key, so "
        "that the same one twice is one. ScyllaDB speaks the same protocol.\n"
        "\n"
        "Arguments become values of their columns. A timestamp is a text of RFC 3339 or a number "
        "of seconds; an object for a text column becomes JSON. A small `batching.count` suits "
        "Cassandra: it warns of batches over 5 KiB, and refuses those over 50 KiB, which are then "
        "sent in halves."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(
            QUERY,
            "string",
            "The statement, with `?` for arguments.",
            access=Access.REMOTE,
            examples=("INSERT INTO shop.orders (id, price) VALUES (?, ?)",),
        ),
        Field(
            ARGS_MAPPING,
            "string",
            "A mapping to an array of the arguments.",
            mapping=True,
            optional=True,
            examples=("root = [this.id, this.price]", "root = [this]"),
        ),
        Field(
            CONSISTENCY,
            "string",
            "The consistency level of the write.",
            default="QUORUM",
            options=_LEVELS,
            advanced=True,
        ),
        Field(
            LOGGED_BATCH,
            "bool",
            "True for logged batches, all of whose statements are done in the end.",
            default=True,
            advanced=True,
        ),
        max_in_flight_field(),
        BATCHING_FIELD,
    ),
    check=_problems,
    begin={
        "query": "INSERT INTO shop.orders (id, price) VALUES (?, ?)",
        "args_mapping": "root = [this.id, this.price]",
    },
    examples=(
        Example(
            "The price of each order",
            "output:\n"
            "  cassandra:\n"
            "    addresses: [localhost:9042]\n"
            "    timeout: 10s\n"
            "    query: INSERT INTO shop.orders (id, price, at) VALUES (?, ?, ?)\n"
            "    args_mapping: root = [this.id, this.price, this.at]\n"
            "    batching:\n"
            "      count: 50\n",
        ),
    ),
    categories=("Services",),
    delivery="at least once; in effect once, because the same row twice is one",
    limits="tested on Cassandra 5.0",
    requires=PACKAGES,
)


class CassandraOutput(Output):
    """Runs the statements of a batch."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Compile the mapping; it is connected when something is sent."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context)
        self._parsed = parsed
        mapping = parsed[ARGS_MAPPING]
        self._mapping = compile_mapping(mapping) if mapping else None
        self._session = context.worker_resource(
            "cassandra", lambda: CassandraSession(parsed, parsed[CONSISTENCY])
        )

    def connect(self, ex: Execution) -> None:
        """Connect to the cluster, and prepare the statement."""
        try:
            self._session.check()
            self._session.prepare(self._parsed[QUERY])
        except CassandraError as error:
            raise SendError(str(error)) from None

    def send(self, batch: Batch, ex: Execution) -> None:
        """Run the statement for the messages of a batch."""
        try:
            statement = self._session.prepare(self._parsed[QUERY])
            failed: dict[int, str] = {}
            bound: dict[int, Any] = {}
            for index in range(len(batch)):
                try:
                    bound[index] = bind_values(statement, self._evaluate(batch, index, ex))
                except MessageError as error:
                    failed[index] = make_invalid_rejection(str(error))
            failed |= self._execute(bound)
        except CassandraError as error:
            kind = NotConnectedError if error.is_connection_lost else SendError
            raise kind(str(error)) from None
        if failed:
            failed = dict(sorted(failed.items()))
            raise SendError(next(iter(failed.values())), failed)

    def _evaluate(self, batch: Batch, index: int, ex: Execution) -> list[Any]:
        if self._mapping is None:
            return []
        values = query_value(self._mapping, batch, index, ex)
        if not isinstance(values, list):
            raise MessageError(f"{ARGS_MAPPING} gives no array: {type(values).__name__}")
        return values

    def _execute(self, bound: Mapping[int, Any]) -> dict[int, str]:
        """Run statements together, or in halves where they are refused; return who is to blame."""
        if not bound:
            return {}
        try:
            self._session.execute(self._make_request(list(bound.values())))
        except CassandraError as error:
            if not error.is_refused:
                raise
            if len(bound) == 1:
                return {next(iter(bound)): Rejection(str(error), Reason.REFUSED)}
            items = list(bound.items())
            half = len(items) // 2
            return self._execute(dict(items[:half])) | self._execute(dict(items[half:]))
        return {}

    def _make_request(self, statements: list[Any]) -> Any:
        from cassandra.query import BatchStatement, BatchType

        if len(statements) == 1:
            return statements[0]
        kind = BatchType.LOGGED if self._parsed[LOGGED_BATCH] else BatchType.UNLOGGED
        request = BatchStatement(kind)
        for one in statements:
            request.add(one)
        return request

    def probe(self) -> str:
        """Check that the cluster answers."""
        return CassandraSession(self._parsed).probe()


def build(parsed: ParsedFields, context: BuildContext) -> CassandraOutput:
    """Compile the mapping; it is connected when something is sent."""
    return CassandraOutput(parsed, context)
