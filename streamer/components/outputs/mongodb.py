"""`mongodb`: "inserts items into a MongoDB collection", or changes those that are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.mongodb.client_fields import (
    CLIENT_FIELDS,
    COLLECTION,
    PACKAGES,
    RETRY_FIELDS,
    client_problems,
    collection_field,
)
from streamer.connectors.mongodb.connection import (
    MongodbConnection,
    MongodbError,
    shared_connection,
)
from streamer.connectors.mongodb.writes import (
    OPERATION,
    UPDATE_ONE,
    WRITE_FIELDS,
    WRITES,
    BulkWriter,
    WriteMaker,
    make_rejection,
    write_problems,
)
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import (
    MAX_IN_FLIGHT,
    NotConnectedError,
    Output,
    SendError,
    max_in_flight_field,
)
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from client_problems(parsed)
    yield from write_problems(parsed)
    yield from batching_problems(parsed)


SPEC: Final = Spec(
    Kind.OUTPUT,
    "mongodb",
    "Writes documents into a collection of MongoDB, or changes and deletes them.",
    description=(
        "The messages of a batch are one request for each collection. A write that the server "
        "refuses is a failure of its message; all others are done. A batch whose answer was lost "
        "is sent again: give documents an `_id` and use `replace-one` with `upsert`, so that "
        "the same write twice is one. With `insert-one` and no `_id` a document may be there twice."
    ),
    fields=(
        *CLIENT_FIELDS,
        collection_field(Kind.OUTPUT),
        Field(OPERATION, "string", "The operation.", default=UPDATE_ONE, options=WRITES),
        *WRITE_FIELDS,
        max_in_flight_field(),
        BATCHING_FIELD,
        *RETRY_FIELDS,
    ),
    check=_problems,
    begin={"document_map": "root = this", "filter_map": "root._id = this.id"},
    examples=(
        Example(
            "The last state of each order",
            "output:\n"
            "  mongodb:\n"
            "    url: mongodb://localhost:27017\n"
            "    database: shop\n"
            "    collection: orders\n"
            "    operation: replace-one\n"
            "    upsert: true\n"
            "    filter_map: root._id = this.id\n"
            "    document_map: |\n"
            '      root = this.without("id")\n'
            "      root._id = this.id\n",
        ),
    ),
    categories=("Services",),
    delivery="at least once; in effect once with `replace-one` and `upsert` by `_id`",
    limits=(
        "tested on FerretDB 1.24, which speaks MongoDB's protocol; it names the wrong message when "
        "one of several updates fails"
    ),
    requires=PACKAGES,
)


class MongodbOutput(Output):
    """Sends the writes of a batch."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Take the fields, and the worker that has the connection."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context)
        self._parsed = parsed
        self._collection = compile_interpolation(parsed[COLLECTION])
        self._maker = WriteMaker(parsed)
        self._connection = shared_connection(parsed, context)
        self._writer = BulkWriter(parsed, self._connection)

    def connect(self, ex: Execution) -> None:
        """Connect to the server."""
        try:
            self._connection.check()
        except MongodbError as error:
            raise SendError(str(error)) from None

    def send(self, batch: Batch, ex: Execution) -> None:
        """Write what the messages of a batch become."""
        failed: dict[int, str] = {}
        writes: dict[str, dict[int, Any]] = {}
        for index in range(len(batch)):
            try:
                collection = interpolate(COLLECTION, self._collection, batch, index, ex)
                write = self._maker.make_write(batch, index, ex)
            except MessageError as error:
                failed[index] = make_rejection(error)
                continue
            writes.setdefault(collection, {})[index] = write
        for collection, some in writes.items():
            try:
                failed |= self._writer.write(collection, some)
            except MongodbError as error:
                kind = NotConnectedError if error.is_connection_lost else SendError
                raise kind(str(error)) from None
        if failed:
            failed = dict(sorted(failed.items()))
            raise SendError(next(iter(failed.values())), failed)

    def probe(self) -> str:
        """Check that a server answers."""
        return MongodbConnection(self._parsed).probe()


def build(parsed: ParsedFields, context: BuildContext) -> MongodbOutput:
    """Compile the mappings; it is connected at the first batch."""
    return MongodbOutput(parsed, context)
