"""Inputs that ask Redis: they differ in what a session does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.redis.client import Client, own_client
from streamer.connectors.redis.errors import RedisError, redis_errors
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import ParsedFields
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

AUTO_REPLAY_NACKS: Final = AUTO_REPLAY_NACKS_FIELD

# How long Redis may take beyond the time that it is asked to wait.
_REPLY_MARGIN_S: Final = 10.0


@dataclass(frozen=True)
class RedisInput:
    """An input before it is opened.

    Attributes:
        parsed: its fields.
        name: its name.
        labels: of its log lines and counts.
        wait_s: seconds that one command may wait for messages.
        session: receives with a client of its own until the stream stops.
    """

    parsed: ParsedFields
    name: str
    labels: dict[str, str]
    wait_s: float
    session: Callable[[ParsedFields, Client, Session], None]

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to receive; return the source of what the spool holds."""

        def session(one: Session) -> None:
            with _redis_as_connection_lost():
                client = own_client(self.parsed, self.wait_s + _REPLY_MARGIN_S)
                with closing(client):
                    client.execute_command("PING")
                    self.session(self.parsed, client, one)

        return start_sessions(context, self.name, self.labels, session)

    def probe(self) -> str:
        """Check that Redis answers."""
        with redis_errors(), closing(own_client(self.parsed)) as client:
            client.execute_command("PING")
        return "Redis answers"


@contextmanager
def _redis_as_connection_lost() -> Iterator[None]:
    try:
        with redis_errors():
            yield
    except RedisError as error:
        raise ConnectionLostError(str(error)) from None


def decode_text(raw: Any) -> str:
    """Return bytes of Redis as text."""
    return raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
