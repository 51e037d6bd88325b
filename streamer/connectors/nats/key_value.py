"""Entries of key-value buckets, as messages have them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final, TypeVar

from streamer.connectors.nats.connection import Client, NatsConnection, NatsError
from streamer.core.durations import SECOND
from streamer.core.timestamps import Timestamp

T = TypeVar("T")

PUT: Final = "KeyValuePutOp"
DELETE: Final = "KeyValueDeleteOp"
PURGE: Final = "KeyValuePurgeOp"
_OPERATIONS: Final = {None: PUT, "PUT": PUT, "DEL": DELETE, "PURGE": PURGE}

Bucket = Any
"""A `nats.js.kv.KeyValue`."""


def operation_name(entry: Any) -> str:
    """Return the operation of an entry, as Go's client calls it."""
    return _OPERATIONS.get(entry.operation or None, str(entry.operation))


def entry_metadata(entry: Any) -> dict[str, Any]:
    """Return the metadata of a message that an entry has become."""
    metadata = {
        "nats_kv_bucket": entry.bucket,
        "nats_kv_delta": entry.delta or 0,
        "nats_kv_key": entry.key,
        "nats_kv_operation": operation_name(entry),
        "nats_kv_revision": entry.revision,
    }
    if (created := creation_time(entry)) is not None:
        metadata["nats_kv_created"] = str(created)
    return metadata


def creation_time(entry: Any) -> Timestamp | None:
    """Return when an entry was made; None where the server does not say."""
    created = entry.created
    if isinstance(created, datetime):
        return Timestamp(round(created.timestamp() * SECOND))
    return Timestamp(created) if isinstance(created, int) else None


class KeyValueStore:
    """A bucket of a connection that is shared by the threads of a worker."""

    def __init__(self, connection: NatsConnection, bucket: str) -> None:
        """Take the connection, and the name of the bucket."""
        self._connection = connection
        self._name = bucket

    def run(self, work: Callable[[Bucket], Awaitable[T]], seconds: float) -> T:
        """Return what work with the bucket returns.

        Args:
            work: takes the bucket.
            seconds: how long it may take.

        Raises:
            NatsError: there is no connection or no such bucket.
            nats.js.errors.KeyNotFoundError: the work asks for a key that is not there.
            nats.js.errors.KeyWrongLastSequenceError: the key has another revision.
        """
        from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError

        async def run_in_bucket(client: Client) -> T | Exception:
            bucket = await find_bucket(client, self._name)
            try:
                return await work(bucket)
            except (KeyNotFoundError, KeyWrongLastSequenceError) as e:
                answer: Exception = e
                return answer

        made = self._connection.run(run_in_bucket, seconds)
        if isinstance(made, Exception):
            raise made
        return made


async def find_bucket(client: Client, name: str) -> Bucket:
    """Return a bucket.

    Raises:
        NatsError: there is none of that name.
    """
    from nats.js.errors import BucketNotFoundError, InvalidBucketNameError

    try:
        return await client.jetstream().key_value(name)
    except (BucketNotFoundError, InvalidBucketNameError):
        raise NatsError(f"bucket {name!r} not found", is_connection_lost=False) from None
