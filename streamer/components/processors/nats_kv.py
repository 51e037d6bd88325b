"""`nats_kv`: does an operation in a key-value bucket of NATS for each message.

It will "perform operations on a NATS key-value bucket". Source: Redpanda Connect's documentation of
the processor, for what each operation makes of a message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.nats.client_fields import (
    BUCKET,
    CLIENT_FIELDS,
    CONNECTION_FIELDS,
    PACKAGES,
    bucket_field,
    client_problems,
)
from streamer.connectors.nats.connection import NatsError, describe_error, shared_connection
from streamer.connectors.nats.key_value import (
    DELETE,
    PURGE,
    PUT,
    Bucket,
    KeyValueStore,
    creation_time,
    entry_metadata,
    operation_name,
)
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import (
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)

OPERATION: Final = "operation"
KEY: Final = "key"
REVISION: Final = "revision"
TIMEOUT: Final = "timeout"

_BY_REVISION: Final = frozenset({"get_revision", "update"})


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from client_problems(parsed)
    operation, has_revision = parsed[OPERATION], bool(parsed[REVISION])
    if operation in _BY_REVISION and not has_revision:
        yield REVISION, f"'revision' must be set when operation is '{operation}'"
    if operation not in _BY_REVISION and has_revision:
        yield REVISION, f"'revision' cannot be set when operation is '{operation}'"
    if not parsed[KEY]:
        yield KEY, "'key' must be set to a non-empty string"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "nats_kv",
    "Reads or changes a key-value bucket of NATS for each message.",
    description=(
        "`get` and `get_revision` put the value in the place of the payload, `history` an array of "
        "all revisions, and `keys` the keys that match. `create`, `put` and `update` store the "
        "payload; `create` fails where the key has a value, and `update` where it has another "
        "revision. `delete` keeps the history, `purge` does not. The metadata are "
        "`nats_kv_key`, `nats_kv_bucket`, `nats_kv_revision`, `nats_kv_operation`, and of values "
        "`nats_kv_delta` and `nats_kv_created`."
    ),
    fields=(
        *CLIENT_FIELDS,
        bucket_field(),
        Field(
            OPERATION,
            "string",
            "Operation.",
            options=(
                *("create", "delete", "get", "get_revision", "history", "keys", "purge", "put"),
                "update",
            ),
        ),
        Field(
            KEY,
            "string",
            "The key; `history` and `keys` take `*` and `>`.",
            interpolated=True,
            examples=("foo", 'foo.${! json("meta.type") }'),
        ),
        Field(
            REVISION,
            "string",
            "The revision, for `get_revision` and `update`.",
            optional=True,
            interpolated=True,
            advanced=True,
            examples=("42", "${! @nats_kv_revision }"),
        ),
        duration_field(TIMEOUT, "Maximum time of an operation.", default="5s", advanced=True),
        *CONNECTION_FIELDS,
    ),
    check=_problems,
    examples=(
        Example(
            "The last value of each sensor",
            "pipeline:\n"
            "  processors:\n"
            "    - nats_kv:\n"
            "        urls: [nats://127.0.0.1:4222]\n"
            "        bucket: sensors\n"
            "        operation: put\n"
            "        key: ${! this.id }\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)

Operate = Callable[[Bucket, str, bytes, int], Awaitable[Any]]
"""Does an operation with a key, a payload and a revision."""


async def _list_keys(bucket: Bucket, key: str, payload: bytes, revision: int) -> list[str]:
    watcher = await bucket.watch(key, ignore_deletes=True, meta_only=True)
    keys: list[str] = []
    try:
        while (entry := await watcher.updates()) is not None:
            keys.append(entry.key)
    finally:
        await watcher.stop()
    return keys


async def _list_revisions(bucket: Bucket, key: str, payload: bytes, revision: int) -> list[Any]:
    watcher = await bucket.watch(key, include_history=True)
    entries: list[Any] = []
    try:
        while (entry := await watcher.updates()) is not None:
            entries.append(entry)
    finally:
        await watcher.stop()
    return entries


_OPERATIONS: Final[dict[str, Operate]] = {
    "create": lambda bucket, key, payload, revision: bucket.create(key, payload),
    "delete": lambda bucket, key, payload, revision: bucket.delete(key),
    "get": lambda bucket, key, payload, revision: bucket.get(key),
    "get_revision": lambda bucket, key, payload, revision: bucket.get(key, revision),
    "history": _list_revisions,
    "keys": _list_keys,
    "purge": lambda bucket, key, payload, revision: bucket.purge(key),
    "put": lambda bucket, key, payload, revision: bucket.put(key, payload),
    "update": lambda bucket, key, payload, revision: bucket.update(key, payload, revision),
}
_CHANGES: Final = {
    "create": PUT,
    "delete": DELETE,
    "purge": PURGE,
    "put": PUT,
    "update": PUT,
}


class _KeyValueOperation:
    """Does an operation for a message."""

    def __init__(self, parsed: ParsedFields, store: KeyValueStore) -> None:
        self._bucket = parsed[BUCKET]
        self._operation = parsed[OPERATION]
        self._key = compile_interpolation(parsed[KEY])
        self._revision = compile_interpolation(parsed[REVISION]) if parsed[REVISION] else None
        self._timeout_s = (parsed[TIMEOUT] or 0) / SECOND or 5.0
        self._store = store

    def __call__(self, message: Message, ex: Execution) -> Message:
        """Return what becomes of the message."""
        import nats.js.errors

        key = interpolate("key", self._key, [message], 0, ex)
        revision = self._find_revision(message, ex)
        operate = _OPERATIONS[self._operation]
        try:
            made = self._store.run(
                lambda bucket: operate(bucket, key, message.raw, revision), self._timeout_s
            )
        except nats.js.errors.KeyNotFoundError:
            raise MessageError("nats: key not found") from None
        except (NatsError, nats.js.errors.KeyWrongLastSequenceError) as error:
            raise MessageError(describe_error(error)) from None
        return self._make_message(message, key, made)

    def _find_revision(self, message: Message, ex: Execution) -> int:
        if self._revision is None:
            return 0
        text = interpolate("revision", self._revision, [message], 0, ex)
        if not text.isdecimal():
            raise MessageError(f"the revision is {text!r}; expected a whole number")
        return int(text)

    def _make_message(self, message: Message, key: str, made: Any) -> Message:
        operation = self._operation
        if operation in _CHANGES:
            changed = {
                "nats_kv_bucket": self._bucket,
                "nats_kv_key": key,
                "nats_kv_operation": _CHANGES[operation],
                "nats_kv_revision": made if _CHANGES[operation] == PUT else 0,
            }
            return message.with_metadata({**message.meta, **changed})
        if operation == "keys":
            bucket = {**message.meta, "nats_kv_bucket": self._bucket}
            return message.with_doc(made).with_metadata(bucket)
        if operation == "history":
            return message.with_doc([_describe_entry(entry) for entry in made])
        value = message.with_bytes(bytes(made.value or b""))
        return value.with_metadata({**message.meta, **entry_metadata(made)})


def _describe_entry(entry: Any) -> dict[str, Any]:
    created = creation_time(entry)
    return {
        "bucket": entry.bucket,
        "created": None if created is None else str(created),
        "delta": entry.delta or 0,
        "key": entry.key,
        "operation": operation_name(entry),
        "revision": entry.revision,
        "value": bytes(entry.value or b""),
    }


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Compile the fields; it is connected at the first message."""
    store = KeyValueStore(shared_connection(parsed, context), parsed[BUCKET])
    return PerMessageProcessor(_KeyValueOperation(parsed, store), ComponentRef(context.component))
