"""What goes wrong with a database."""

from __future__ import annotations

from streamer.errors import StreamerError


class SqlError(StreamerError):
    """A statement failed, or there is no connection; the text is the database's."""
