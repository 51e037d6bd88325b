"""What all outputs to databases do with their connection."""

from __future__ import annotations

from streamer.failure import Origin
from streamer.message import Execution
from streamer.sending import SendError
from streamer.sending.rejection import Reason, Rejection
from streamer.sql.database import Database
from streamer.sql.errors import SqlError


def connecting(database: Database, origin: Origin, ex: Execution) -> None:
    """Connect to a database, and run what is to be run first.

    Raises:
        SendError: it is not there.
    """
    try:
        database.begin(ex, origin)
    except SqlError as error:
        raise SendError(str(error)) from None


def failure(error: SqlError) -> str:
    """Return why a statement failed: a rejection when the values of the message are why."""
    return Rejection(str(error), Reason.REFUSED) if error.refused else str(error)


def answering(database: Database) -> str:
    """Ask a database for a number, for `probe`; nothing is left behind.

    Raises:
        SqlError: it does not answer.
    """
    database.run("SELECT 1")
    database.close()
    return "the database answers"
