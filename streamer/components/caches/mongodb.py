"""`mongodb`: "use a MongoDB instance as a cache"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from streamer.connectors.mongodb.client_fields import (
    CLIENT_FIELDS,
    COLLECTION,
    PACKAGES,
    client_problems,
    collection_field,
)
from streamer.connectors.mongodb.connection import (
    MongodbConnection,
    MongodbError,
    mongodb_errors,
    shared_connection,
)
from streamer.core.execution import Execution
from streamer.sdk.cache import CacheError, KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

T = TypeVar("T")

KEY_FIELD: Final = "key_field"
VALUE_FIELD: Final = "value_field"

_DUPLICATE_KEY: Final = 11000

SPEC: Final = Spec(
    Kind.CACHE,
    "mongodb",
    "Keeps values in a collection of MongoDB, where all workers of all machines find them.",
    description=(
        "Make `_id` the `key_field`, or give it a unique index: without, two workers that add the "
        "same key at once may both succeed. Values are texts, and have no lifetime of their own; "
        "an index of MongoDB with `expireAfterSeconds` can delete them."
    ),
    fields=(
        *CLIENT_FIELDS,
        collection_field(Kind.CACHE),
        Field(KEY_FIELD, "string", "The field of the key.", access=Access.NONE, examples=("_id",)),
        Field(
            VALUE_FIELD, "string", "The field of the value.", access=Access.NONE, examples=("v",)
        ),
    ),
    check=client_problems,
    examples=(
        Example(
            "Drop what was seen by any worker",
            "pipeline:\n"
            "  processors:\n"
            "    - dedupe:\n"
            "        cache: seen\n"
            "        key: ${! this.id }\n"
            "cache_resources:\n"
            "  - label: seen\n"
            "    mongodb:\n"
            "      url: mongodb://localhost:27017\n"
            "      database: shop\n"
            "      collection: seen\n"
            "      key_field: _id\n"
            "      value_field: value\n",
        ),
    ),
    categories=("Services",),
    limits="no lifetime of values; tested on FerretDB 1.24, which speaks MongoDB's protocol",
    requires=PACKAGES,
)


class MongodbCache:
    """Values in a collection."""

    def __init__(self, parsed: ParsedFields, connection: MongodbConnection) -> None:
        """Take the names of the fields, and the connection."""
        self._name = parsed[COLLECTION]
        self._key = parsed[KEY_FIELD]
        self._value = parsed[VALUE_FIELD]
        self._connection = connection

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key."""
        document = self._run(lambda collection: collection.find_one({self._key: key}))
        if document is None:
            raise KeyNotFoundError
        value = document.get(self._value)
        if isinstance(value, bytes):
            return value
        if not isinstance(value, str):
            raise CacheError(f"error getting field from document {self._value}: it is no text")
        return value.encode()

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value."""
        change = {"$set": {self._value: _pack(value)}}
        if self._update(key, change) is None:
            # Another worker has inserted the key meanwhile: now it is there.
            self._update(key, change)

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none."""
        result = self._update(key, {"$setOnInsert": {self._value: _pack(value)}})
        if result is None or result.matched_count:
            raise KeyAlreadyExistsError

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        self._run(lambda collection: collection.delete_one({self._key: key}))

    def _update(self, key: str, change: dict[str, Any]) -> Any:
        return self._run(
            lambda collection: collection.update_one({self._key: key}, change, upsert=True)
        )

    def _run(self, work: Callable[[Any], T]) -> T | None:
        """Return what work with the collection returns; None where another was faster to insert."""
        try:
            with mongodb_errors():
                return work(self._connection.database[self._name])
        except MongodbError as error:
            if error.code == _DUPLICATE_KEY:
                return None
            raise CacheError(str(error)) from None


def _pack(value: bytes) -> Any:
    """Return a value as a text where it is one, as in Redpanda Connect; else as it is."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def build(parsed: ParsedFields, context: BuildContext) -> MongodbCache:
    """Take the fields; it is connected at the first use."""
    return MongodbCache(parsed, shared_connection(parsed, context))
