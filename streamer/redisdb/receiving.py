"""Inputs that ask Redis: they differ in what a session does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from streamer.landing.landed import Landed
from streamer.landing.sessions import LostError, Session, receive_in_sessions
from streamer.landing.store import Store
from streamer.redisdb.client import Client, own_client
from streamer.redisdb.errors import RedisError, redis_errors
from streamer.source.opening import Room
from streamer.spec import Parsed
from streamer.spec.nacks import AUTO_REPLAY_NACKS_FIELD

AUTO_REPLAY_NACKS: Final = AUTO_REPLAY_NACKS_FIELD

# How long Redis may take beyond the time that it is asked to wait.
_PATIENCE: Final = 10.0


@dataclass(frozen=True)
class RedisInput:
    """An input before it is opened.

    Attributes:
        parsed: its fields.
        name: its name.
        labels: of its log lines and counts.
        waits: seconds that one command may wait for messages.
        session: receives with a client of its own until the stream stops.
    """

    parsed: Parsed
    name: str
    labels: dict[str, str]
    waits: float
    session: Callable[[Parsed, Client, Session], None]

    def opened(self, room: Room) -> Landed:
        """Begin to receive; return what has landed."""
        store = Store(room.directory, room.spool_limit)

        def session(one: Session) -> None:
            with _lost():
                client = own_client(self.parsed, self.waits + _PATIENCE)
                with closing(client):
                    client.execute_command("PING")
                    self.session(self.parsed, client, one)

        receive_in_sessions(room, store, self.name, self.labels, session)
        return Landed(room.directory, inside=not room.local)

    def probe(self) -> str:
        """Look whether Redis answers."""
        with redis_errors(), closing(own_client(self.parsed)) as client:
            client.execute_command("PING")
        return "Redis answers"


@contextmanager
def _lost() -> Iterator[None]:
    try:
        with redis_errors():
            yield
    except RedisError as error:
        raise LostError(str(error)) from None


def text_of(raw: Any) -> str:
    """Return bytes of Redis as text."""
    return raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
