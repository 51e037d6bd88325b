"""`mongodb`: "performs operations against MongoDB for each message"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.mongodb.client_fields import (
    CLIENT_FIELDS,
    COLLECTION,
    JSON_MARSHAL_MODE,
    MARSHAL_FIELD,
    PACKAGES,
    RETRY_FIELDS,
    client_problems,
    collection_field,
)
from streamer.connectors.mongodb.connection import (
    MongodbConnection,
    MongodbError,
    mongodb_errors,
    shared_connection,
)
from streamer.connectors.mongodb.documents import dump_document
from streamer.connectors.mongodb.writes import (
    AGGREGATE,
    FIND_ONE,
    INSERT_ONE,
    OPERATION,
    WRITE_FIELDS,
    WRITES,
    BulkWriter,
    WriteMaker,
    write_problems,
)
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

_READS: Final = (FIND_ONE, AGGREGATE)


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from client_problems(parsed)
    yield from write_problems(parsed)


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "mongodb",
    "Finds, writes or deletes documents of MongoDB for each message.",
    description=(
        "`find-one` replaces the message by the document, `aggregate` by an array of documents. "
        "The other operations leave it as it is; those of a batch are one request for each "
        "collection. A message whose operation fails is marked as failed, as is one for "
        "which there is no document. After a failure of a worker, writes are done again."
    ),
    fields=(
        *CLIENT_FIELDS,
        collection_field(Kind.PROCESSOR),
        Field(
            OPERATION,
            "string",
            "The operation.",
            default=INSERT_ONE,
            options=(*WRITES, *_READS),
        ),
        *WRITE_FIELDS,
        MARSHAL_FIELD,
        *RETRY_FIELDS,
    ),
    check=_problems,
    begin={"document_map": "root = this"},
    examples=(
        Example(
            "Add the customer to an order",
            "pipeline:\n"
            "  processors:\n"
            "    - branch:\n"
            "        processors:\n"
            "          - mongodb:\n"
            "              url: mongodb://localhost:27017\n"
            "              database: shop\n"
            "              collection: customers\n"
            "              operation: find-one\n"
            "              filter_map: root._id = this.customer\n"
            "              json_marshal_mode: relaxed\n"
            "        result_map: root.customer = this\n",
        ),
    ),
    categories=("Services",),
    limits="tested on FerretDB 1.24, which speaks MongoDB's protocol",
    requires=PACKAGES,
)


class MongodbProcessor:
    """Does an operation for each message of a batch."""

    def __init__(
        self, parsed: ParsedFields, connection: MongodbConnection, origin: ComponentRef
    ) -> None:
        """Take the fields, the connection, and the component in whose name failures are logged."""
        self._operation = parsed[OPERATION]
        self._mode = parsed[JSON_MARSHAL_MODE]
        self._collection = compile_interpolation(parsed[COLLECTION])
        self._maker = WriteMaker(parsed)
        self._connection = connection
        self._writer = BulkWriter(parsed, connection)
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch, with what was found."""
        if self._operation in _READS:
            return [[self._read(batch, index, ex) for index in range(len(batch))]]
        failed: dict[int, str] = {}
        writes: dict[str, dict[int, Any]] = {}
        for index in range(len(batch)):
            try:
                collection = interpolate(COLLECTION, self._collection, batch, index, ex)
                write = self._maker.make_write(batch, index, ex)
            except MessageError as error:
                failed[index] = str(error)
                continue
            writes.setdefault(collection, {})[index] = write
        for collection, some in writes.items():
            try:
                failed |= self._writer.write(collection, some)
            except MongodbError as error:
                failed |= dict.fromkeys(some, str(error))
        return [
            [
                self._origin.fail(message, failed[index], ex) if index in failed else message
                for index, message in enumerate(batch)
            ]
        ]

    def _read(self, batch: Batch, index: int, ex: Execution) -> Message:
        message = batch[index]
        try:
            name = interpolate(COLLECTION, self._collection, batch, index, ex)
            document, filter_, hint = self._maker.make_parts(batch, index, ex)
            with mongodb_errors():
                collection = self._connection.database[name]
                if self._operation == AGGREGATE:
                    stages = document if isinstance(document, list) else [document]
                    rows = [dump_document(one, self._mode) for one in collection.aggregate(stages)]
                    return message.with_bytes(b"[" + b",".join(rows) + b"]")
                keys = list(hint.items()) if isinstance(hint, dict) else hint
                result = collection.find_one(filter_, hint=keys)
            if result is None:
                raise MessageError("mongo: no documents in result")
            return message.with_bytes(dump_document(result, self._mode))
        except (MessageError, MongodbError) as error:
            return self._origin.fail(message, str(error), ex)


def build(parsed: ParsedFields, context: BuildContext) -> MongodbProcessor:
    """Compile the mappings; it is connected at the first message."""
    origin = ComponentRef(context.component)
    return MongodbProcessor(parsed, shared_connection(parsed, context), origin)
