"""`redis_pubsub`: hears what is published in channels of Redis.

"Consume from a Redis publish/subscribe channel using either the SUBSCRIBE or PSUBSCRIBE commands."
Redis keeps nothing of what it publishes.
"""

from __future__ import annotations

from typing import Final

from streamer.failure import Origin
from streamer.landing.blocks import each
from streamer.landing.sessions import Session
from streamer.redisdb import CLIENT_FIELDS, client_problems
from streamer.redisdb.client import Client
from streamer.redisdb.receiving import AUTO_REPLAY_NACKS, RedisInput
from streamer.spec import BuildContext, Example, Field, Kind, Package, Parsed, Spec

CHANNELS: Final = "channels"
USE_PATTERNS: Final = "use_patterns"

SPEC: Final = Spec(
    Kind.INPUT,
    "redis_pubsub",
    "Hears what is published in channels of Redis.",
    description=(
        "The driver listens, and what it hears is safe on its disk before it is processed. What is "
        "published while it does not listen is heard by nobody."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(CHANNELS, "string", "The channels.", shape="array", examples=(["events"],)),
        Field(
            USE_PATTERNS,
            "bool",
            "Whether the channels are patterns: `h?llo`, `h*llo`, `h[ae]llo`.",
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
    requires=(Package("redis"),),
)

_WAIT: Final = 0.5
_MOST: Final = 1000


def _session(parsed: Parsed, client: Client, session: Session) -> None:
    with client.pubsub(ignore_subscribe_messages=False) as listener:
        subscribe = listener.psubscribe if parsed[USE_PATTERNS] else listener.subscribe
        subscribe(*parsed[CHANNELS])
        missing = len(set(parsed[CHANNELS]))
        while not session.room.stopping:
            raws: list[bytes] = []
            wait = _WAIT
            while len(raws) < _MOST:
                found = listener.get_message(timeout=wait)
                if found is None:
                    break
                if found["type"].endswith("message"):
                    raws.append(found["data"])
                elif found["type"].endswith("subscribe"):
                    missing -= 1
                    if missing == 0:
                        session.up()
                wait = 0.0  # what is there already lands together
            if raws and not session.land([each(raws, {})]):
                return


def build(parsed: Parsed, context: BuildContext) -> RedisInput:
    """Take the fields; it is connected once it is opened."""
    labels = Origin(context.component).fields
    return RedisInput(parsed, "redis_pubsub", labels, _WAIT, _session)
