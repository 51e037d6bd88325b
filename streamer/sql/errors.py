"""What goes wrong with a database."""

from __future__ import annotations

from streamer.errors import StreamerError


class SqlError(StreamerError):
    """A statement failed, or there is no connection; the text is the database's.

    Attributes:
        refused: whether the values of the statement are why: they have the wrong type or size, or
            are against a constraint (SQLSTATE classes 22 and 23).
    """

    def __init__(self, text: str, *, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused
