"""`nats_kv`: it will "cache key/values in a NATS key-value bucket"."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from streamer.connectors.nats.client_fields import (
    BUCKET,
    CLIENT_FIELDS,
    CONNECTION_FIELDS,
    PACKAGES,
    bucket_field,
    client_problems,
)
from streamer.connectors.nats.connection import NatsError, shared_connection
from streamer.connectors.nats.key_value import Bucket, KeyValueStore
from streamer.core.execution import Execution
from streamer.sdk.cache import CacheError, KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

T = TypeVar("T")

_TIMEOUT_S: Final = 5.0

SPEC: Final = Spec(
    Kind.CACHE,
    "nats_kv",
    "Keeps values in a key-value bucket of NATS, where all workers of all machines find them.",
    description=(
        "Keys have letters, digits and `-`, `/`, `_`, `=`, `.`. The lifetime of values is that of "
        "the bucket."
    ),
    fields=(*CLIENT_FIELDS, bucket_field(), *CONNECTION_FIELDS),
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
            "    nats_kv:\n"
            "      urls: [nats://127.0.0.1:4222]\n"
            "      bucket: seen\n",
        ),
    ),
    categories=("Services",),
    limits="one lifetime for all values, which the bucket has",
    requires=PACKAGES,
)


class NatsKeyValueCache:
    """Values in a bucket."""

    def __init__(self, store: KeyValueStore) -> None:
        """Take the bucket."""
        self._store = store

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key."""
        entry = self._run(lambda bucket: bucket.get(key))
        return bytes(entry.value or b"")

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value."""
        self._run(lambda bucket: bucket.put(key, value))

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none."""
        self._run(lambda bucket: bucket.create(key, value))

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        self._run(lambda bucket: bucket.delete(key))

    def _run(self, work: Callable[[Bucket], Awaitable[T]]) -> T:
        from nats.js.errors import KeyNotFoundError as MissingKeyError
        from nats.js.errors import KeyWrongLastSequenceError

        try:
            return self._store.run(work, _TIMEOUT_S)
        except NatsError as error:
            raise CacheError(str(error)) from None
        except MissingKeyError:
            raise KeyNotFoundError from None
        except KeyWrongLastSequenceError:
            raise KeyAlreadyExistsError from None


def build(parsed: ParsedFields, context: BuildContext) -> NatsKeyValueCache:
    """Take the bucket's name; it is connected at the first use."""
    return NatsKeyValueCache(KeyValueStore(shared_connection(parsed, context), parsed[BUCKET]))
