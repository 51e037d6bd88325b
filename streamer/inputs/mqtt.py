"""`mqtt`: subscribes to topics of MQTT brokers.

A message that the broker waits to have acknowledged is safe on the driver's disk before it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from streamer.failure import Origin
from streamer.landing.blocks import each
from streamer.landing.landed import Landed
from streamer.landing.sessions import LostError, Session, receive_in_sessions
from streamer.landing.store import Store
from streamer.mqtt import CLIENT_FIELDS, MqttError, client_problems, connect, reason
from streamer.mqtt.client import QOS, Client, qos_problem
from streamer.source.opening import Room
from streamer.spec import BuildContext, Example, Field, Kind, Package, Parsed, Spec
from streamer.spec.nacks import AUTO_REPLAY_NACKS_FIELD

TOPICS: Final = "topics"
CLEAN_SESSION: Final = "clean_session"

_WAIT: Final = 0.5

SPEC: Final = Spec(
    Kind.INPUT,
    "mqtt",
    "Subscribes to topics of MQTT brokers.",
    description=(
        "The driver listens; with a `qos` of 1 or 2 a message is safe on its disk before the "
        "broker hears that it was taken. Adds the metadata `mqtt_topic`, `mqtt_qos`, "
        "`mqtt_retained`, `mqtt_duplicate` and `mqtt_message_id`."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(TOPICS, "string", "The topics; `+` and `#` may be used.", shape="array"),
        Field(
            QOS,
            "int",
            "The quality of service that messages are asked for with: 0, 1 or 2.",
            default=1,
            advanced=True,
            check=qos_problem,
        ),
        Field(
            CLEAN_SESSION,
            "bool",
            "Whether the broker forgets the client when it is gone. Otherwise, with a `client_id`, "
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
    requires=(Package("paho"),),
)


@dataclass(frozen=True)
class MqttInput:
    """The input before it is opened.

    Attributes:
        parsed: its fields.
        labels: of its log lines and counts.
    """

    parsed: Parsed
    labels: dict[str, str]

    def opened(self, room: Room) -> Landed:
        """Begin to listen; return what has landed."""
        store = Store(room.directory, room.spool_limit)

        def session(one: Session) -> None:
            _Listener(self.parsed, one).run()

        receive_in_sessions(room, store, "mqtt", self.labels, session)
        return Landed(room.directory, inside=not room.local)

    def probe(self) -> str:
        """Look whether a broker answers."""
        connect(self.parsed, lambda client: None, apart=True).disconnect()
        return "the broker answers"


class _Listener:
    """One session; the client's callbacks run within its own thread."""

    def __init__(self, parsed: Parsed, session: Session) -> None:
        self._parsed = parsed
        self._session = session
        self._heard: list[Any] = []
        self._refused = ""

    def run(self) -> None:
        try:
            client = connect(self._parsed, self._prepare, clean=self._parsed[CLEAN_SESSION])
        except MqttError as error:
            raise LostError(str(error)) from None
        try:
            while not self._session.room.stopping:
                code = client.loop(_WAIT)
                if self._heard and not self._land(client):
                    return
                if self._refused:
                    raise LostError(self._refused)
                if code:
                    raise LostError(reason(code))
        finally:
            client.disconnect()

    def _prepare(self, client: Client) -> None:
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = lambda _, __, message: self._heard.append(message)

    def _on_connect(self, client: Client, _: Any, __: Any, code: Any, ___: Any) -> None:
        if code.is_failure:
            self._refused = str(code)
            return
        qos = self._parsed[QOS]
        client.subscribe([(topic, qos) for topic in self._parsed[TOPICS]])

    def _on_subscribe(self, _: Any, __: Any, ___: Any, codes: list[Any], ____: Any) -> None:
        refused = [str(code) for code in codes if code.is_failure]
        if refused:
            self._refused = f"cannot subscribe: {refused[0]}"
        else:
            self._session.up()

    def _land(self, client: Client) -> bool:
        heard, self._heard = self._heard, []
        records = [
            each(
                [bytes(message.payload)],
                {
                    "mqtt_duplicate": bool(message.dup),
                    "mqtt_qos": message.qos,
                    "mqtt_retained": bool(message.retain),
                    "mqtt_topic": message.topic,
                    "mqtt_message_id": message.mid,
                },
            )
            for message in heard
        ]
        if not self._session.land(records):
            return False
        for message in heard:
            client.ack(message.mid, message.qos)
        return True


def build(parsed: Parsed, context: BuildContext) -> MqttInput:
    """Take the fields; it is connected once it is opened."""
    return MqttInput(parsed, Origin(context.component).fields)
