"""Inputs that run a query once: every row is a message, and then they have ended.

The rows land in the spool as they come. A query that was not read to its end when the program
stopped is run again at the next start, from its begin: nobody says that it would give the same rows
in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamer.bloblang import Mapping
from streamer.errors import MessageError, StreamerError
from streamer.failure import Origin
from streamer.landing.blocks import each
from streamer.landing.landed import Landed
from streamer.landing.pointer import read_safe
from streamer.landing.sessions import LostError, Session, receive_in_sessions
from streamer.landing.store import Store
from streamer.message import Execution, Message
from streamer.source.opening import Room
from streamer.spec import Parsed
from streamer.spec.nacks import AUTO_REPLAY_NACKS_FIELD
from streamer.sql.arguments import Arguments
from streamer.sql.errors import SqlError
from streamer.sql.sending import answering
from streamer.sql.settings import own_database
from streamer.sql.statements import Select
from streamer.value import dump_each

AUTO_REPLAY_NACKS: Final = AUTO_REPLAY_NACKS_FIELD

_ROWS: Final = 1000


@dataclass(frozen=True)
class QueryInput:
    """An input before it is opened.

    Attributes:
        name: its name.
        parsed: its fields.
        query: the query.
        mapping: gives the query's arguments, or None.
        takes_arguments: whether the query has a place for them.
        origin: who speaks in the log.
    """

    name: str
    parsed: Parsed
    query: str | Select
    mapping: Mapping | None
    takes_arguments: bool
    origin: Origin

    def opened(self, room: Room) -> Landed:
        """Begin to read rows; return what has landed.

        Raises:
            StreamerError: the mapping of the arguments fails.
        """
        landed = Landed(room.directory, inside=not room.local)
        if read_safe(room.directory).closed:
            return landed
        database = own_database(self.parsed)
        ex = Execution(_now, room.log, room.count)
        arguments = self._arguments(ex)
        store = Store(room.directory, room.spool_limit)

        def session(one: Session) -> None:
            try:
                database.begin(ex, self.origin)
                one.up()
                for rows in database.stream(self.query, arguments, _ROWS):
                    raws = dump_each(rows.objects())
                    if room.stopping or not one.land([each(raws, {})]):
                        return
            except SqlError as error:
                raise LostError(str(error)) from None
            finally:
                database.close()

        receive_in_sessions(room, store, self.name, self.origin.fields, session)
        return landed

    def probe(self) -> str:
        """Look whether the database answers."""
        return answering(own_database(self.parsed))

    def _arguments(self, ex: Execution) -> list[object]:
        if self.mapping is None or not self.takes_arguments:
            return []
        try:
            return Arguments(self.mapping).of([Message(b"")], 0, ex)
        except MessageError as error:
            raise StreamerError(f"{self.name}: args_mapping: {error}") from None


def _now() -> int:
    from time import time_ns

    return time_ns()
