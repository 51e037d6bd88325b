"""`redis_list`: "pops messages from the beginning of a Redis list", or from its end.

A popped message is gone from Redis; it is written to disk before another one is requested.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.redis import CLIENT_FIELDS, PACKAGES, client_problems
from streamer.connectors.redis.client import Client
from streamer.connectors.redis.input_base import AUTO_REPLAY_NACKS, RedisInput
from streamer.connectors.spool.blocks import pack_each
from streamer.connectors.spool.reconnecting_receiver import Session
from streamer.core.durations import SECOND
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)

KEY: Final = "key"
TIMEOUT: Final = "timeout"
COMMAND: Final = "command"

_BATCH_MESSAGES: Final = 100

SPEC: Final = Spec(
    Kind.INPUT,
    "redis_list",
    "Pops messages from a list of Redis.",
    description=(
        "Messages are popped by the driver, up to a hundred at a time, and are safe on its "
        "disk before more are requested. Popped messages that are not yet written when the "
        "machine fails are lost, because Redis no longer has them."
    ),
    fields=(
        *CLIENT_FIELDS,
        Field(KEY, "string", "The key of the list."),
        AUTO_REPLAY_NACKS,
        Field(
            "max_in_flight",
            "int",
            "Has no effect: what is popped waits on disk, and no more is popped while that is "
            "full.",
            default=0,
            advanced=True,
        ),
        duration_field(
            TIMEOUT,
            "Time for which Redis waits for messages in one request.",
            default="5s",
            advanced=True,
        ),
        Field(
            COMMAND,
            "string",
            "`blpop` takes messages from the beginning of the list, `brpop` from its end.",
            access=Access.REMOTE,
            default="blpop",
            options=("blpop", "brpop"),
            advanced=True,
        ),
    ),
    check=client_problems,
    examples=(
        Example(
            "A queue",
            "input:\n  redis_list:\n    url: redis://localhost:6379\n    key: events\n",
        ),
    ),
    categories=("Services",),
    delivery="at most once until it is on the driver's disk, at least once from there on",
    requires=PACKAGES,
)

# A stop should not wait for Redis longer than this.
_MAX_WAIT_S: Final = 1.0


def _run_session(parsed: ParsedFields, client: Client, session: Session) -> None:
    wait, pop = parsed[COMMAND].upper(), parsed[COMMAND][1:].upper()
    key = parsed[KEY]
    session.set_connected()
    while not session.context.stopping:
        reply = client.execute_command(wait, key, min(_wait_s(parsed), _MAX_WAIT_S))
        if reply is None:
            continue
        raws = [reply[1]]
        # `LPOP key count` is younger (Redis 6.2) than the rest.
        more = client.execute_command(pop, key, _BATCH_MESSAGES - 1)
        raws += more or []
        if not session.write([pack_each(raws, {})]):
            # The stream stops: what is popped already goes back to where it came from.
            back = "LPUSH" if pop == "LPOP" else "RPUSH"
            client.execute_command(back, key, *reversed(raws))
            return


def _wait_s(parsed: ParsedFields) -> float:
    return (parsed[TIMEOUT] or 0) / SECOND or _MAX_WAIT_S


def build(parsed: ParsedFields, context: BuildContext) -> RedisInput:
    """Take the fields; it is connected once it is opened."""
    labels = ComponentRef(context.component).fields
    return RedisInput(parsed, "redis_list", labels, _MAX_WAIT_S, _run_session)
