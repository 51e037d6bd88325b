"""`mqtt`: subscribes to topics of MQTT brokers.

A message that the broker waits to have acknowledged is safe on the driver's disk before it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.mqtt import (
    CLIENT_FIELDS,
    PACKAGES,
    QOS,
    Client,
    MqttError,
    client_problems,
    connect,
    qos_problem,
    reason_text,
)
from streamer.connectors.spool.blocks import pack_each
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

TOPICS: Final = "topics"
CLEAN_SESSION: Final = "clean_session"

_LOOP_TIMEOUT_S: Final = 0.5

SPEC: Final = Spec(
    Kind.INPUT,
    "mqtt",
    "Subscribes to topics of MQTT brokers.",
    description=(
        "The driver listens; with a `qos` of 1 or 2 a message is safe on its disk before the "
        "broker gets the acknowledgement. Adds the metadata `mqtt_topic`, `mqtt_qos`, "
        "`mqtt_retained`, `mqtt_duplicate` and `mqtt_message_id`."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(TOPICS, "string", "The topics; `+` and `#` may be used.", shape="array"),
        Field(
            QOS,
            "int",
            "The quality of service that messages are requested with: 0, 1 or 2.",
            default=1,
            advanced=True,
            check=qos_problem,
        ),
        Field(
            CLEAN_SESSION,
            "bool",
            "True if the broker forgets the client when it is gone. Otherwise, with a `client_id`, "
            "it keeps what is published meanwhile.",
            default=True,
            advanced=True,
        ),
        AUTO_REPLAY_NACKS_FIELD,
    ),
    check=client_problems,
    examples=(
        Example(
            "All sensors",
            "input:\n"
            "  mqtt:\n"
            "    urls: [tcp://localhost:1883]\n"
            "    topics: [sensors/#]\n"
            "    client_id: reader\n"
            "    clean_session: false\n",
        ),
    ),
    categories=("Services",),
    delivery="at least once with a qos of 1 or 2, from the driver's disk on with 0",
    requires=PACKAGES,
)


@dataclass(frozen=True)
class MqttInput:
    """The input before it is opened.

    Attributes:
        parsed: its fields.
        labels: of its log lines and counts.
    """

    parsed: ParsedFields
    labels: dict[str, str]

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to listen; return the source of what the spool holds."""

        def session(one: Session) -> None:
            _MqttSession(self.parsed, one).run()

        return start_sessions(context, "mqtt", self.labels, session)

    def probe(self) -> str:
        """Check that a broker answers."""
        connect(self.parsed, lambda client: None, is_additional=True).disconnect()
        return "the broker answers"


class _MqttSession:
    """One session; the client's callbacks run within its own thread."""

    def __init__(self, parsed: ParsedFields, session: Session) -> None:
        self._parsed = parsed
        self._session = session
        self._received: list[Any] = []
        self._refusal = ""

    def run(self) -> None:
        try:
            client = connect(self._parsed, self._prepare, clean=self._parsed[CLEAN_SESSION])
        except MqttError as error:
            raise ConnectionLostError(str(error)) from None
        try:
            while not self._session.context.stopping:
                code = client.loop(_LOOP_TIMEOUT_S)
                if self._received and not self._spool(client):
                    return
                if self._refusal:
                    raise ConnectionLostError(self._refusal)
                if code:
                    raise ConnectionLostError(reason_text(code))
        finally:
            client.disconnect()

    def _prepare(self, client: Client) -> None:
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = lambda _, __, message: self._received.append(message)

    def _on_connect(self, client: Client, _: Any, __: Any, code: Any, ___: Any) -> None:
        if code.is_failure:
            self._refusal = str(code)
            return
        qos = self._parsed[QOS]
        client.subscribe([(topic, qos) for topic in self._parsed[TOPICS]])

    def _on_subscribe(self, _: Any, __: Any, ___: Any, codes: list[Any], ____: Any) -> None:
        refused = [str(code) for code in codes if code.is_failure]
        if refused:
            self._refusal = f"cannot subscribe: {refused[0]}"
        else:
            self._session.set_connected()

    def _spool(self, client: Client) -> bool:
        received, self._received = self._received, []
        records = [
            pack_each(
                [bytes(message.payload)],
                {
                    "mqtt_duplicate": bool(message.dup),
                    "mqtt_qos": message.qos,
                    "mqtt_retained": bool(message.retain),
                    "mqtt_topic": message.topic,
                    "mqtt_message_id": message.mid,
                },
            )
            for message in received
        ]
        if not self._session.write(records):
            return False
        for message in received:
            client.ack(message.mid, message.qos)
        return True


def build(parsed: ParsedFields, context: BuildContext) -> MqttInput:
    """Take the fields; it is connected once it is opened."""
    return MqttInput(parsed, ComponentRef(context.component).fields)
