"""`mongodb`: "executes a query and creates a message for each document received".

The documents go into the spool as they come, with the last `_id` where they are sorted by it. A
query that was cut short goes on behind that, or is run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang import compile_mapping
from streamer.connectors.mongodb.client_fields import (
    CLIENT_FIELDS,
    COLLECTION,
    DATABASE,
    JSON_MARSHAL_MODE,
    MARSHAL_FIELD,
    PACKAGES,
    client_problems,
    collection_field,
)
from streamer.connectors.mongodb.connection import (
    MongodbConnection,
    MongodbError,
    mongodb_errors,
)
from streamer.connectors.mongodb.documents import CANONICAL, dump_document, load_document
from streamer.connectors.spool.blocks import Record, pack_batch, pack_each
from streamer.connectors.spool.driver_reader import make_execution
from streamer.connectors.spool.pointer import read_safe
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.core.errors import MessageError, StreamerError
from streamer.core.json.parse import parse_json
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.mapping_query import query_value
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

OPERATION: Final = "operation"
QUERY: Final = "query"
BATCH_SIZE: Final = "batch_size"
SORT: Final = "sort"
LIMIT: Final = "limit"

_FIND: Final = "find"
_ID: Final = "_id"
_BLOCK_DOCUMENTS: Final = 1_000
_BLOCK_BYTES: Final = 4 << 20
_TYPE_ORDER: Final = (
    *("null", "number", "string", "object", "binData", "objectId", "bool", "date", "timestamp"),
)
"""Types of an `_id` in the order in which MongoDB sorts them."""


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from client_problems(parsed)
    if parsed[OPERATION] != _FIND:
        for name in (SORT, LIMIT):
            if parsed[name]:
                yield name, f"is used by find only; make it a stage of {QUERY}"


SPEC: Final = Spec(
    Kind.INPUT,
    "mongodb",
    "Runs a query of MongoDB, and makes a message of each document.",
    description=(
        "The driver runs the query once, and its documents are safe on its disk before they are "
        "processed; after the last one the input has ended. The metadata are `mongo_database` and "
        "`mongo_collection`.\n\n"
        "With `sort: {_id: 1}` (or -1), a query that was interrupted goes on behind the last "
        "document on the disk, and each is read once, but for an `_id` that is MinKey or MaxKey. "
        "Any other query is run again completely."
    ),
    fields=(
        *CLIENT_FIELDS,
        collection_field(Kind.INPUT),
        Field(
            OPERATION,
            "string",
            "`find` takes a filter, `aggregate` an array of stages.",
            default=_FIND,
            options=(_FIND, "aggregate"),
            advanced=True,
        ),
        MARSHAL_FIELD,
        Field(
            QUERY,
            "string",
            "A mapping to the filter or the stages, as Extended JSON.",
            mapping=True,
            examples=('root.age = {"$gte": 18}', "root = {}"),
        ),
        AUTO_REPLAY_NACKS_FIELD,
        Field(
            BATCH_SIZE,
            "int",
            "Documents of a batch; without it each is a batch by itself.",
            optional=True,
            check=lambda number: None if number >= 1 else f"is {number}; expected 1 or more",
            examples=(1000,),
        ),
        Field(
            SORT,
            "int",
            "Fields to sort by, each with 1 (ascending) or -1; for `find`.",
            optional=True,
            shape="map",
            examples=({"name": 1}, {"_id": 1}),
        ),
        Field(LIMIT, "int", "Maximum number of documents; for `find`.", optional=True),
    ),
    check=_problems,
    begin={"query": "root = {}", "sort": {"_id": 1}},
    examples=(
        Example(
            "Each adult once",
            "input:\n"
            "  mongodb:\n"
            "    url: mongodb://localhost:27017\n"
            "    database: people\n"
            "    collection: users\n"
            "    query: 'root.age = {\"$gte\": 18}'\n"
            "    json_marshal_mode: relaxed\n"
            "    sort: { _id: 1 }\n",
        ),
    ),
    categories=("Services",),
    delivery=(
        "exactly once onto the driver's disk when sorted by `_id`; else at least once: a query "
        "that was cut short runs again"
    ),
    limits="tested on FerretDB 1.24, which speaks MongoDB's protocol",
    requires=PACKAGES,
)


@dataclass(frozen=True)
class MongodbInput:
    """An input before it is opened.

    Attributes:
        parsed: its fields.
        origin: who speaks in the log.
    """

    parsed: ParsedFields
    origin: ComponentRef

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read documents; return the source of what the spool holds.

        Raises:
            StreamerError: the mapping of the query fails.
        """
        if read_safe(context.directory).closed:
            return SpoolSource.for_input(context)
        query = self._evaluate_query(context)
        connection = MongodbConnection(self.parsed)

        def session(one: Session) -> None:
            try:
                connection.check()
                one.set_connected()
                _QuerySession(self.parsed, connection, one).run(query)
            except MongodbError as error:
                raise ConnectionLostError(str(error)) from None
            finally:
                connection.close()

        return start_sessions(context, "mongodb", self.origin.fields, session)

    def _evaluate_query(self, context: InputContext) -> Any:
        try:
            ex = make_execution(context)
            value = query_value(compile_mapping(self.parsed[QUERY]), [Message(b"{}")], 0, ex)
            return load_document(value, QUERY)
        except MessageError as error:
            raise StreamerError(f"mongodb: {error}") from None

    def probe(self) -> str:
        """Check that a server answers."""
        return MongodbConnection(self.parsed).probe()


class _QuerySession:
    """Runs the query once, from its begin or from where the spool ends."""

    def __init__(self, parsed: ParsedFields, connection: MongodbConnection, session: Session):
        self._parsed = parsed
        self._connection = connection
        self._session = session
        sort = parsed[SORT] or {}
        self._direction = sort[_ID] if list(sort) == [_ID] else 0
        mark = session.store.mark if self._direction else None
        self._count = mark["count"] if mark else 0
        self._last = load_document(parse_json(mark["last"].encode()), _ID) if mark else None
        self._mode = parsed[JSON_MARSHAL_MODE]
        self._meta = {
            "mongo_database": parsed[DATABASE],
            "mongo_collection": parsed[COLLECTION],
        }

    def run(self, query: Any) -> None:
        limit = self._parsed[LIMIT] or 0
        if limit and self._count >= limit:
            return
        raws: list[bytes] = []
        size, last = 0, None
        with mongodb_errors():
            for document in self._cursor(query):
                raws.append(dump_document(document, self._mode))
                size += len(raws[-1])
                last = document.get(_ID)
                if len(raws) >= self._block_documents() or size >= _BLOCK_BYTES:
                    if not self._write(raws, last):
                        return
                    raws, size = [], 0
        if raws:
            self._write(raws, last)

    def _block_documents(self) -> int:
        size = self._parsed[BATCH_SIZE] or 1
        return max(_BLOCK_DOCUMENTS // size, 1) * size

    def _cursor(self, query: Any) -> Any:
        parsed = self._parsed
        collection = self._connection.database[parsed[COLLECTION]]
        size = parsed[BATCH_SIZE] or 0
        if parsed[OPERATION] != _FIND:
            return collection.aggregate(query, batchSize=size or None)
        if self._last is not None:
            behind = [{_ID: one} for one in _behind(self._last["v"], self._direction)]
            query = {"$and": [query, {"$or": behind}]}
        limit = (parsed[LIMIT] or 0) - self._count if parsed[LIMIT] else 0
        sort = list((parsed[SORT] or {}).items()) or None
        return collection.find(query, sort=sort, limit=limit, batch_size=size)

    def _write(self, raws: list[bytes], last: Any) -> bool:
        if self._session.context.stopping:
            return False
        records: list[Record]
        if size := self._parsed[BATCH_SIZE]:
            parts = [raws[at : at + size] for at in range(0, len(raws), size)]
            records = [pack_batch([Message(raw, self._meta) for raw in part]) for part in parts]
        else:
            records = [pack_each(raws, self._meta)]
        self._count += len(raws)
        mark = None
        if self._direction:
            mark = {"last": dump_document({"v": last}, CANONICAL).decode(), "count": self._count}
        return self._session.write(records, mark)


def _behind(last: Any, direction: int) -> list[Mapping[str, Any]]:
    """Return the conditions, of which one holds for an `_id` that is sorted behind another."""
    order = _TYPE_ORDER if direction > 0 else tuple(reversed(_TYPE_ORDER))
    kind = _type_name(last)
    later = list(order[order.index(kind) + 1 :])
    compared: list[Mapping[str, Any]] = [{"$gt" if direction > 0 else "$lt": last}]
    return [*compared, {"$type": later}] if later else compared


def _type_name(value: Any) -> str:
    """Return the type of an `_id`, as `$type` has it."""
    from bson import Decimal128, ObjectId, Timestamp

    if isinstance(value, bool):
        return "bool"
    kinds: tuple[tuple[Any, str], ...] = (
        (str, "string"),
        ((int, float, Decimal128), "number"),
        (ObjectId, "objectId"),
        (dict, "object"),
        (type(None), "null"),
        (Timestamp, "timestamp"),
        (bytes, "binData"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "date")


def build(parsed: ParsedFields, context: BuildContext) -> MongodbInput:
    """Take the fields; the query is run once the input is opened."""
    return MongodbInput(parsed, ComponentRef(context.component))
