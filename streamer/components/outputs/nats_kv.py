"""`nats_kv`: it will "put messages in a NATS key-value bucket"."""

from __future__ import annotations

import asyncio
from typing import Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.nats.client_fields import (
    BUCKET,
    CLIENT_FIELDS,
    CONNECTION_FIELDS,
    PACKAGES,
    bucket_field,
    client_problems,
)
from streamer.connectors.nats.connection import (
    NatsConnection,
    NatsError,
    describe_error,
    shared_connection,
)
from streamer.connectors.nats.key_value import Bucket, KeyValueStore
from streamer.connectors.nats.output_base import SEND_TIMEOUT_S, as_send_error
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import (
    MAX_IN_FLIGHT,
    Output,
    SendError,
    max_in_flight_field,
)
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

KEY: Final = "key"

SPEC: Final = Spec(
    Kind.OUTPUT,
    "nats_kv",
    "Stores messages in a key-value bucket of NATS.",
    description=(
        "A message replaces the value of its key, so that one that is sent twice leaves one "
        "value. Messages of a batch that have the same key are stored in their order."
    ),
    fields=(
        *CLIENT_FIELDS,
        bucket_field(),
        Field(
            KEY,
            "string",
            "The key.",
            interpolated=True,
            examples=("foo", 'foo.${! json("meta.type") }'),
        ),
        max_in_flight_field(1024),
        *CONNECTION_FIELDS,
    ),
    check=client_problems,
    examples=(
        Example(
            "The last window of each light",
            "output:\n"
            "  nats_kv:\n"
            "    urls: [nats://127.0.0.1:4222]\n"
            "    bucket: lights\n"
            "    key: ${! this.light }\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


class NatsKeyValueOutput(Output):
    """Puts messages into a bucket."""

    def __init__(self, parsed: ParsedFields, connection: NatsConnection) -> None:
        """Take the fields, and the worker's connection."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self._parsed = parsed
        self._key = compile_interpolation(parsed[KEY])
        self._connection = connection
        self._store = KeyValueStore(connection, parsed[BUCKET])

    def connect(self, ex: Execution) -> None:
        """Connect, and find the bucket."""
        try:
            self._store.run(lambda bucket: bucket.status(), SEND_TIMEOUT_S)
        except NatsError as error:
            raise SendError(str(error)) from None

    def send(self, batch: Batch, ex: Execution) -> None:
        """Store the messages of a batch; keys are written side by side, each in order."""
        failed: dict[int, str] = {}
        by_key: dict[str, list[int]] = {}
        for index in range(len(batch)):
            try:
                key = interpolate("key", self._key, batch[index : index + 1], 0, ex)
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
                continue
            by_key.setdefault(key, []).append(index)
        try:
            failed |= self._store.run(
                lambda bucket: _put_all(bucket, batch, by_key), SEND_TIMEOUT_S
            )
        except NatsError as error:
            raise as_send_error(error) from None
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def probe(self) -> str:
        """Check that the bucket is there."""
        try:
            self._store.run(lambda bucket: bucket.status(), SEND_TIMEOUT_S)
        finally:
            self._connection.close()
        return "the bucket is there"


async def _put_all(bucket: Bucket, batch: Batch, by_key: dict[str, list[int]]) -> dict[int, str]:
    failed: dict[int, str] = {}

    async def put_values(key: str, indexes: list[int]) -> None:
        for index in indexes:
            failure = await _put(bucket, key, batch[index].raw)
            if failure is not None:
                failed[index] = failure

    await asyncio.gather(*(put_values(key, indexes) for key, indexes in by_key.items()))
    return failed


async def _put(bucket: Bucket, key: str, value: bytes) -> str | None:
    """Store a value; return why it failed, as a rejection where that is its own fault."""
    import nats.errors
    from nats.js.errors import APIError, InvalidKeyError

    try:
        await bucket.put(key, value)
    except InvalidKeyError:
        return make_invalid_rejection(f"the key {key!r} is invalid")
    except nats.errors.MaxPayloadError as error:
        return Rejection(describe_error(error), Reason.REFUSED)
    except (APIError, nats.errors.TimeoutError) as error:
        return describe_error(error)
    return None


def build(parsed: ParsedFields, context: BuildContext) -> NatsKeyValueOutput:
    """Compile the key; it is connected when something is sent."""
    return NatsKeyValueOutput(parsed, shared_connection(parsed, context))
