"""`redis_pubsub`: receives messages that are published in channels of Redis.

"Consume from a Redis publish/subscribe channel using either the SUBSCRIBE or PSUBSCRIBE commands."
Redis keeps nothing of what it publishes.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.redis import CLIENT_FIELDS, PACKAGES, client_problems
from streamer.connectors.redis.client import Client
from streamer.connectors.redis.input_base import AUTO_REPLAY_NACKS, RedisInput
from streamer.connectors.spool.blocks import pack_each
from streamer.connectors.spool.reconnecting_receiver import Session
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

CHANNELS: Final = "channels"
USE_PATTERNS: Final = "use_patterns"

SPEC: Final = Spec(
    Kind.INPUT,
    "redis_pubsub",
    "Receives messages that are published in channels of Redis.",
    description=(
        "The driver listens, and messages are safe on its disk before they are processed. "
        "Messages that are published while it does not listen are lost."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(CHANNELS, "string", "The channels.", shape="array", examples=(["events"],)),
        Field(
            USE_PATTERNS,
            "bool",
            "True if the channels are patterns: `h?llo`, `h*llo`, `h[ae]llo`.",
            default=False,
        ),
        AUTO_REPLAY_NACKS,
    ),
    check=client_problems,
    examples=(
        Example(
            "All channels of a kind",
            "input:\n"
            "  redis_pubsub:\n"
            "    url: redis://localhost:6379\n"
            "    channels: ['events:*']\n"
            "    use_patterns: true\n",
        ),
    ),
    categories=("Services",),
    delivery=(
        "what is published while nobody listens is lost; at least once from the driver's disk on"
    ),
    requires=PACKAGES,
)

_POLL_TIMEOUT_S: Final = 0.5
_MAX_BATCH_MESSAGES: Final = 1000


def _run_session(parsed: ParsedFields, client: Client, session: Session) -> None:
    with client.pubsub(ignore_subscribe_messages=False) as listener:
        subscribe = listener.psubscribe if parsed[USE_PATTERNS] else listener.subscribe
        subscribe(*parsed[CHANNELS])
        missing = len(set(parsed[CHANNELS]))
        while not session.context.stopping:
            raws: list[bytes] = []
            wait = _POLL_TIMEOUT_S
            while len(raws) < _MAX_BATCH_MESSAGES:
                message = listener.get_message(timeout=wait)
                if message is None:
                    break
                if message["type"].endswith("message"):
                    raws.append(message["data"])
                elif message["type"].endswith("subscribe"):
                    missing -= 1
                    if missing == 0:
                        session.set_connected()
                wait = 0.0  # what is there already lands together
            if raws and not session.write([pack_each(raws, {})]):
                return


def build(parsed: ParsedFields, context: BuildContext) -> RedisInput:
    """Take the fields; it is connected once it is opened."""
    labels = ComponentRef(context.component).fields
    return RedisInput(parsed, "redis_pubsub", labels, _POLL_TIMEOUT_S, _run_session)
