"""The fields of both components for MQTT, and the client that they describe."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import SplitResult

from streamer.connectors.tls import TLS, TLS_FIELD, tls_context, tls_problems
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.urls import split_url
from streamer.sdk.spec import Access, Field, Package, ParsedFields, duration_field

URLS: Final = "urls"
CLIENT_ID: Final = "client_id"
DYNAMIC_SUFFIX: Final = "dynamic_client_id_suffix"
CONNECT_TIMEOUT: Final = "connect_timeout"
WILL: Final = "will"
USER: Final = "user"
PASSWORD: Final = "password"
KEEPALIVE: Final = "keepalive"
QOS: Final = "qos"

_PLAIN: Final = {"tcp": 1883, "mqtt": 1883, "ws": 80}
_ENCRYPTED: Final = {"ssl": 8883, "tls": 8883, "mqtts": 8883, "tcps": 8883, "wss": 443}
_PORTS: Final = {**_PLAIN, **_ENCRYPTED}

Client = Any
"""A `paho.mqtt.client.Client`."""


class MqttError(StreamerError):
    """There is no connection, or the broker refuses."""


def _urls_problem(urls: Any) -> str | None:
    for text in urls:
        try:
            urls_of_item = _split_urls(text)
        except ValueError as e:
            return f"has {e}"
        for url in urls_of_item:
            if url.scheme not in _PORTS or not url.hostname:
                return f"has {text!r}; expected a URL such as tcp://localhost:1883"
    return (
        None
        if any(map(_split_urls, urls))
        else "is an empty list; expected a URL such as tcp://localhost:1883"
    )


def qos_problem(qos: int) -> str | None:
    """Return what is wrong with a quality of service."""
    return None if qos in (0, 1, 2) else f"is {qos}; expected 0, 1 or 2"


PACKAGES: Final = (Package("paho"),)

CLIENT_FIELDS: Final = (
    Field(
        URLS,
        "string",
        "URLs of the brokers; the first one that answers is used. Without a scheme it is `tcp`.",
        access=Access.ADDRESS,
        shape="array",
        check=_urls_problem,
        examples=(["tcp://localhost:1883"],),
    ),
    Field(
        CLIENT_ID, "string", "The name of the client; the broker makes one when empty.", default=""
    ),
    Field(
        DYNAMIC_SUFFIX,
        "string",
        "Suffix of the name, so that no two clients have the same: `nanoid` adds random "
        "letters. Empty adds nothing.",
        optional=True,
        options=("nanoid", ""),
        advanced=True,
    ),
    duration_field(CONNECT_TIMEOUT, "Maximum time to connect.", default="30s"),
    Field(
        WILL,
        "object",
        "Message that the broker publishes when the client disappears without a disconnect.",
        advanced=True,
        children=(
            Field("enabled", "bool", "True to enable it.", default=False),
            Field(QOS, "int", "Its quality of service.", default=0, check=qos_problem),
            Field("retained", "bool", "True if the broker keeps it.", default=False),
            Field("topic", "string", "Its topic.", default=""),
            Field("payload", "string", "The message.", default=""),
        ),
    ),
    Field(USER, "string", "The user.", default="", advanced=True),
    Field(PASSWORD, "string", "The password.", default="", secret=True, advanced=True),
    Field(
        KEEPALIVE,
        "int",
        "Seconds after which the client pings the broker, when nothing is sent.",
        default=30,
        advanced=True,
    ),
    TLS_FIELD,
)


def client_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    yield from tls_problems(parsed)
    will = parsed[WILL]
    if will["enabled"] and not will["topic"]:
        yield f"{WILL}.topic", "include topic to register a last will"


def connect(
    parsed: ParsedFields,
    prepare: Callable[[Client], None],
    *,
    clean: bool = True,
    is_additional: bool = False,
) -> Client:
    """Connect to the first broker that answers.

    Args:
        parsed: the fields.
        prepare: sets callbacks, before the connection is made.
        clean: whether the broker is to forget what it knows of the client.
        is_additional: whether other clients of this config may be there, which need names of their
            own.

    Raises:
        MqttError: none answers.
    """
    failed = ""
    for text in parsed[URLS]:
        for url in _split_urls(text):
            client = _make_client(parsed, url, clean, is_additional)
            prepare(client)
            try:
                client.connect(url.hostname, url.port or _PORTS[url.scheme], parsed[KEEPALIVE])
            except (OSError, ValueError) as error:
                failed = str(error) or type(error).__name__
                continue
            return client
    raise MqttError(failed)


def reason_text(code: Any) -> str:
    """Return what a code of the client's means."""
    import paho.mqtt.client as mqtt

    return mqtt.error_string(code).rstrip(".")


def _split_urls(text: str) -> list[SplitResult]:
    return [_parse_url(one.strip()) for one in text.split(",") if one.strip()]


def _parse_url(text: str) -> SplitResult:
    """Return the parts of a broker's URL; as with Go's client, what has no scheme is `tcp`."""
    if text.startswith(":"):
        text = f"127.0.0.1{text}"
    return split_url(text if "://" in text else f"tcp://{text}")


def _make_client(
    parsed: ParsedFields, url: SplitResult, clean: bool, is_additional: bool
) -> Client:
    import paho.mqtt.client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    name = parsed[CLIENT_ID]
    if parsed[DYNAMIC_SUFFIX] or (is_additional and name):
        name += secrets.token_urlsafe(12)
    client = mqtt.Client(
        CallbackAPIVersion.VERSION2,
        client_id=name,
        # The broker can only remember a client by its name.
        clean_session=clean or not name,
        transport="websockets" if url.scheme in ("ws", "wss") else "tcp",
        manual_ack=True,
    )
    client.connect_timeout = (parsed[CONNECT_TIMEOUT] or 0) / SECOND or 30.0
    user = url.username or parsed[USER]
    if user:
        client.username_pw_set(user, url.password or parsed[PASSWORD] or None)
    will = parsed[WILL]
    if will["enabled"]:
        client.will_set(will["topic"], will["payload"], will[QOS], will["retained"])
    context = tls_context(parsed[TLS])
    if context is None and url.scheme in _ENCRYPTED:
        import ssl

        context = ssl.create_default_context()
    if context is not None:
        client.tls_set_context(context)
    if url.scheme in ("ws", "wss") and url.path:
        client.ws_set_options(path=url.path)
    return client
