"""Writes of MongoDB: what messages become, and how many are sent at once.

A bulk of inserts is not ordered: each stands for itself. All others are: of two changes of one
document, the later one is done last. A bulk that is ordered ends at a write that fails; what is
behind it is sent as another bulk, so that a message fails for its own sake only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamer.bloblang import Mapping as Bloblang
from streamer.bloblang import compile_mapping
from streamer.bloblang.errors import QueryError
from streamer.connectors.mongodb.connection import MongodbConnection, MongodbError, mongodb_errors
from streamer.connectors.mongodb.documents import MAX_DOCUMENT_BYTES, load_document
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.value import DELETED
from streamer.sdk.mapping_query import query_value
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection
from streamer.sdk.spec import Field, ParsedFields, duration_field

OPERATION: Final = "operation"
WRITE_CONCERN: Final = "write_concern"
DOCUMENT_MAP: Final = "document_map"
FILTER_MAP: Final = "filter_map"
HINT_MAP: Final = "hint_map"
UPSERT: Final = "upsert"

INSERT_ONE: Final = "insert-one"
DELETE_ONE: Final = "delete-one"
DELETE_MANY: Final = "delete-many"
REPLACE_ONE: Final = "replace-one"
UPDATE_ONE: Final = "update-one"
FIND_ONE: Final = "find-one"
AGGREGATE: Final = "aggregate"

WRITES: Final = (INSERT_ONE, DELETE_ONE, DELETE_MANY, REPLACE_ONE, UPDATE_ONE)

_WITH_DOCUMENT: Final = frozenset({INSERT_ONE, REPLACE_ONE, UPDATE_ONE, AGGREGATE})
_WITH_FILTER: Final = frozenset({DELETE_ONE, DELETE_MANY, REPLACE_ONE, UPDATE_ONE, FIND_ONE})
_WITH_UPSERT: Final = frozenset({REPLACE_ONE, UPDATE_ONE})

_COMMANDS: Final = {
    INSERT_ONE: ("insert", "documents"),
    DELETE_ONE: ("delete", "deletes"),
    DELETE_MANY: ("delete", "deletes"),
    REPLACE_ONE: ("update", "updates"),
    UPDATE_ONE: ("update", "updates"),
}
"""The command of an operation, and the name of its list."""
_MAX_WRITES: Final = 10_000
_MAX_COMMAND_BYTES: Final = 32 << 20

_PASSING: Final = frozenset({13, 18, 91, 189, 10107, 11600, 11602, 13435, 13436})
"""Codes of failures of which the message is not the cause: rights, and servers that go down."""


def _map_field(name: str, description: str) -> Field:
    return Field(
        name,
        "string",
        description,
        default="",
        mapping=True,
        examples=("root.a = this.foo\nroot.b = this.bar",),
    )


WRITE_FIELDS: Final = (
    Field(
        WRITE_CONCERN,
        "object",
        "When the server confirms a write.",
        children=(
            Field(
                "w",
                "string",
                "`majority`, a number of servers, or the name of a write concern of the "
                "cluster. With `0` nothing is confirmed, and messages may be lost.",
                default="majority",
            ),
            Field("j", "bool", "True to wait for the server's journal.", default=False),
            duration_field("w_timeout", "Maximum time to wait for it.", default=""),
        ),
    ),
    _map_field(
        DOCUMENT_MAP,
        "A mapping to the document, the update or the pipeline, as Extended JSON; for inserts, "
        "replacements, updates and `aggregate`.",
    ),
    _map_field(
        FILTER_MAP, "A mapping to the filter, as Extended JSON; for all other than inserts."
    ),
    _map_field(
        HINT_MAP, "A mapping to the index to use: its name, or an object of its keys; optional."
    ),
    Field(
        UPSERT,
        "bool",
        "True to insert a document where the filter of `update-one` or `replace-one` finds none.",
        default=False,
    ),
)


def write_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    operation = parsed[OPERATION]
    for name, takers, is_needed in (
        (FILTER_MAP, _WITH_FILTER, True),
        (DOCUMENT_MAP, _WITH_DOCUMENT, True),
        (HINT_MAP, _WITH_FILTER, False),
        (UPSERT, _WITH_UPSERT, False),
    ):
        if parsed[name] and operation not in takers:
            yield name, f"is not used by {operation}; leave it out"
        elif is_needed and not parsed[name] and operation in takers:
            yield name, f"is needed by {operation}"


class WriteParts(NamedTuple):
    """The parts of an operation, as the mappings have made them; None for those that it lacks."""

    document: Any
    filter: Any
    hint: Any


class Write(NamedTuple):
    """An item of a command.

    Attributes:
        document: the item.
        size: its bytes.
    """

    document: Mapping[str, Any]
    size: int


class WriteMaker:
    """Makes operations of messages."""

    def __init__(self, parsed: ParsedFields) -> None:
        """Compile the mappings."""
        self._operation = parsed[OPERATION]
        self._is_upsert = parsed[UPSERT]
        self._maps: dict[str, Bloblang | None] = {
            name: compile_mapping(parsed[name]) if parsed[name] else None
            for name in (DOCUMENT_MAP, FILTER_MAP, HINT_MAP)
        }

    def make_parts(self, batch: Batch, index: int, ex: Execution) -> WriteParts:
        """Return the parts for a message of a batch.

        Raises:
            MessageError: a mapping fails, or makes what is no Extended JSON.
        """
        return WriteParts(
            self._evaluate(DOCUMENT_MAP, batch, index, ex),
            self._evaluate(FILTER_MAP, batch, index, ex),
            self._evaluate(HINT_MAP, batch, index, ex),
        )

    def _evaluate(self, name: str, batch: Batch, index: int, ex: Execution) -> Any:
        mapping = self._maps[name]
        if mapping is None:
            return None
        try:
            value = query_value(mapping, batch, index, ex)
        except (MessageError, QueryError) as e:
            raise MessageError(f"executing {name}: {e}") from None
        if value is DELETED:
            raise MessageError(f"executing {name}: the mapping has deleted the message")
        return load_document(value, name)

    def make_write(self, batch: Batch, index: int, ex: Execution) -> Write:
        """Return the write for a message of a batch.

        Raises:
            MessageError: there is none for it.
            DocumentTooLargeError: the document is larger than a server takes.
        """
        from bson import ObjectId

        document, filter_, hint = self.make_parts(batch, index, ex)
        operation = self._operation
        if operation == INSERT_ONE:
            self._check_document(document)
            return _measure({"_id": ObjectId(), **document})
        if not isinstance(filter_, Mapping):
            raise MessageError(f"executing {FILTER_MAP}: the filter is no object")
        hinted = {} if hint is None else {"hint": hint}
        if operation in (DELETE_ONE, DELETE_MANY):
            return _measure({"q": filter_, "limit": int(operation == DELETE_ONE), **hinted})
        self._check_document(document)
        return _measure({"q": filter_, "u": document, "upsert": self._is_upsert, **hinted})

    def _check_document(self, document: Any) -> None:
        """Check that a document is an update, or is none, as the operation wants it."""
        if self._operation == UPDATE_ONE:
            stages = document if isinstance(document, list) and document else [document]
            if all(isinstance(one, Mapping) and _begins_with_dollar(one) for one in stages):
                return
            text = 'an update has operators such as {"$set": {...}} only'
            raise MessageError(f"executing {DOCUMENT_MAP}: {text}")
        if not isinstance(document, Mapping):
            raise MessageError(f"executing {DOCUMENT_MAP}: the document is no object")
        if self._operation == REPLACE_ONE and _begins_with_dollar(document):
            raise MessageError(f"executing {DOCUMENT_MAP}: a replacement has no operators")


class DocumentTooLargeError(MessageError):
    """A document is larger than a server takes."""


def _begins_with_dollar(document: Mapping[str, Any]) -> bool:
    return bool(document) and next(iter(document)).startswith("$")


def _measure(document: Mapping[str, Any]) -> Write:
    import bson
    from bson.errors import BSONError

    try:
        size = len(bson.encode(document))
    except (BSONError, OverflowError, ValueError, TypeError) as e:
        raise MessageError(f"no document of MongoDB: {e}") from None
    if size > MAX_DOCUMENT_BYTES:
        raise DocumentTooLargeError(
            f"the document has {size:,} bytes; MongoDB takes {MAX_DOCUMENT_BYTES:,} at most"
        )
    return Write(document, size)


def make_rejection(error: MessageError) -> Rejection:
    """Return why a message is no operation."""
    if isinstance(error, DocumentTooLargeError):
        return Rejection(str(error), Reason.TOO_LARGE)
    return make_invalid_rejection(str(error))


class BulkWriter:
    """Sends writes, and finds which of them have failed."""

    def __init__(self, parsed: ParsedFields, connection: MongodbConnection) -> None:
        """Take the fields, and the connection."""
        self._connection = connection
        self._operation = parsed[OPERATION]
        self._is_ordered = self._operation != INSERT_ONE
        self._concern = _write_concern(parsed[WRITE_CONCERN])

    def write(self, collection: str, writes: Mapping[int, Write]) -> dict[int, str]:
        """Send writes; return why some have failed, by their indexes.

        Args:
            collection: the collection's name.
            writes: by the indexes of their messages.

        Raises:
            MongodbError: the server does not answer, or confirms none.
        """
        failed: dict[int, str] = {}
        left = list(writes)
        while left:
            part = _first_part(left, writes)
            left = left[len(part) :]
            try:
                reply = self._send(collection, [writes[index].document for index in part])
            except MongodbError as e:
                if e.is_connection_lost or e.code in _PASSING or not e.code:
                    raise
                if len(part) == 1:
                    failed[part[0]] = Rejection(str(e), Reason.REFUSED)
                    continue
                # One of them is why, and none was done.
                for index in part:
                    failed |= self.write(collection, {index: writes[index]})
                continue
            errors = reply.get("writeErrors", [])
            for error in errors:
                failed[part[error["index"]]] = _failure_text(error)
            if concern := reply.get("writeConcernError"):
                text = str(concern.get("errmsg", "the writes are not confirmed"))
                raise MongodbError(text, is_connection_lost=True)
            if self._is_ordered and errors:
                left = part[errors[0]["index"] + 1 :] + left
        return failed

    def _send(self, collection: str, documents: Sequence[Mapping[str, Any]]) -> Any:
        command, items = _COMMANDS[self._operation]
        with mongodb_errors():
            return self._connection.database.command(
                {
                    command: collection,
                    "ordered": self._is_ordered,
                    "writeConcern": self._concern,
                    items: documents,
                }
            )


def _write_concern(concern: ParsedFields) -> dict[str, Any]:
    w, timeout = concern["w"], concern["w_timeout"]
    made: dict[str, Any] = {"w": int(w) if w.isdecimal() else w}
    if concern["j"]:
        made["j"] = True
    if timeout:
        made["wtimeout"] = round(timeout / (SECOND // 1000))
    return made


def _first_part(indexes: Sequence[int], writes: Mapping[int, Write]) -> list[int]:
    """Return the first writes, as many as one command takes."""
    size, count = 0, 0
    for index in indexes[:_MAX_WRITES]:
        size += writes[index].size
        if count and size > _MAX_COMMAND_BYTES:
            break
        count += 1
    return list(indexes[:count])


def _failure_text(error: Mapping[str, Any]) -> str:
    text = str(error.get("errmsg", "the write has failed"))
    return text if error.get("code") in _PASSING else Rejection(text, Reason.REFUSED)
