"""`mqtt`: "pushes messages to an MQTT broker"."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.mqtt import (
    CLIENT_FIELDS,
    PACKAGES,
    QOS,
    Client,
    MqttError,
    client_problems,
    connect,
    qos_problem,
)
from streamer.core.durations import SECOND
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
from streamer.sdk.output.rejection import make_invalid_rejection
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field

TOPIC: Final = "topic"
WRITE_TIMEOUT: Final = "write_timeout"
RETAINED: Final = "retained"
RETAINED_INTERPOLATED: Final = "retained_interpolated"

_INVALID_TOPIC: Final = re.compile("[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
"""What texts of MQTT 3.1.1 (1.5.3) should not have: a broker may close the connection on it."""
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from client_problems(parsed)


SPEC: Final = Spec(
    Kind.OUTPUT,
    "mqtt",
    "Publishes messages in topics of an MQTT broker.",
    description=(
        "With a `qos` of 1 or 2, a message counts as sent when the broker has accepted it. "
        "Every worker has its own client, named `client_id` plus some letters, because a "
        "broker refuses two clients of the same name."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(TOPIC, "string", "The topic.", interpolated=True, examples=("sensors/${! @id }",)),
        Field(QOS, "int", "The quality of service: 0, 1 or 2.", default=1, check=qos_problem),
        duration_field(
            WRITE_TIMEOUT, "Maximum time of the broker to accept a message.", default="3s"
        ),
        Field(
            RETAINED,
            "bool",
            "True if the broker keeps the message as the topic's last.",
            default=False,
        ),
        Field(
            RETAINED_INTERPOLATED,
            "string",
            "The same for each message; it wins over `retained`.",
            optional=True,
            interpolated=True,
            advanced=True,
        ),
        max_in_flight_field(),
    ),
    check=_problems,
    examples=(
        Example(
            "A topic for each sensor",
            "output:\n"
            "  mqtt:\n"
            "    urls: [tcp://localhost:1883]\n"
            "    topic: sensors/${! this.id }\n",
        ),
    ),
    categories=("Services",),
    requires=PACKAGES,
)


class _Connection:
    """A worker's client, made again when it is lost; threads may share it."""

    def __init__(self, parsed: ParsedFields) -> None:
        self._parsed = parsed
        self._client: Client | None = None
        self._lock = threading.Lock()

    def client(self) -> Client:
        """Return the client, connected.

        Raises:
            MqttError: no broker answers, or it refuses.
        """
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def drop(self, client: Client) -> None:
        """Give a client up that is of no use any more."""
        with self._lock:
            if self._client is client:
                self._client = None
        client.loop_stop()
        client.disconnect()

    def _connect(self) -> Client:
        answered = threading.Event()
        codes: list[Any] = []

        def on_connect(client: Client, _: Any, __: Any, code: Any, ___: Any) -> None:
            codes.append(code)
            answered.set()

        def prepare(client: Client) -> None:
            client.on_connect = on_connect

        client = connect(self._parsed, prepare, is_additional=True)
        client.loop_start()
        timeout_s = client.connect_timeout
        if not answered.wait(timeout_s) or codes[0].is_failure:
            client.loop_stop()
            raise MqttError(str(codes[0]) if codes else f"no answer within {timeout_s:g} s")
        return client


class MqttOutput(Output):
    """Publishes messages."""

    def __init__(self, parsed: ParsedFields, connection: _Connection) -> None:
        self._parsed = parsed
        self._connection = connection
        self._topic = compile_interpolation(parsed[TOPIC])
        retained = parsed[RETAINED_INTERPOLATED]
        self._retained = compile_interpolation(retained) if retained else None
        self._write_timeout_s = (parsed[WRITE_TIMEOUT] or 0) / SECOND or None
        self.max_in_flight = parsed[MAX_IN_FLIGHT]

    def connect(self, ex: Execution) -> None:
        """Connect to the broker."""
        try:
            self._connection.client()
        except MqttError as error:
            raise SendError(str(error)) from None

    def send(self, batch: Batch, ex: Execution) -> None:
        """Publish the messages of a batch, one after the other."""
        try:
            client = self._connection.client()
        except MqttError as error:
            raise NotConnectedError(str(error)) from None
        failed: dict[int, str] = {}
        for index in range(len(batch)):
            try:
                self._publish(client, batch, index, ex)
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def _publish(self, client: Client, batch: Batch, index: int, ex: Execution) -> None:
        # As in Redpanda Connect, the output sees one message at a time.
        message = batch[index : index + 1]
        topic = interpolate("topic", self._topic, message, 0, ex)
        if match := _INVALID_TOPIC.search(topic):
            raise MessageError(f"Invalid topic: it has the character U+{ord(match[0]):04X}.")
        retain = self._parsed[RETAINED]
        if self._retained is not None:
            retain = interpolate("retained", self._retained, message, 0, ex) in _TRUE
        try:
            sent = client.publish(topic, batch[index].raw, self._parsed[QOS], retain)
            sent.wait_for_publish(self._write_timeout_s)
            done = sent.is_published()
        except ValueError as error:
            raise MessageError(str(error)) from None  # a topic that cannot be
        except RuntimeError as error:
            self._connection.drop(client)
            raise NotConnectedError(str(error)) from None
        if not done:
            self._connection.drop(client)
            raise NotConnectedError("the broker has not taken a message in time")

    def probe(self) -> str:
        """Check that a broker answers."""
        connect(self._parsed, lambda client: None, is_additional=True).disconnect()
        return "the broker answers"


def build(parsed: ParsedFields, context: BuildContext) -> MqttOutput:
    """Compile the topic; it is connected when something is sent."""
    return MqttOutput(parsed, context.worker_resource("mqtt", lambda: _Connection(parsed)))
