"""Base of the outputs to databases: their connection and retries."""

from __future__ import annotations

from streamer.connectors.sql.database import Database
from streamer.connectors.sql.errors import SqlError
from streamer.core.execution import Execution
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import Reason, Rejection


def connect_database(database: Database, origin: ComponentRef, ex: Execution) -> None:
    """Connect to a database, and run what is to be run first.

    Raises:
        SendError: it is not there.
    """
    try:
        database.begin(ex, origin)
    except SqlError as error:
        raise SendError(str(error)) from None


def failure_text(error: SqlError) -> str:
    """Return why a statement failed: a rejection when the values of the message are why."""
    return Rejection(str(error), Reason.REFUSED) if error.is_refused else str(error)


def probe_database(database: Database) -> str:
    """Run `SELECT 1`, for `probe`; no connection is left open.

    Raises:
        SqlError: it does not answer.
    """
    database.run("SELECT 1")
    database.close()
    return "the database answers"
