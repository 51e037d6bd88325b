"""Errors of databases."""

from __future__ import annotations

from streamer.core.errors import StreamerError


class SqlError(StreamerError):
    """A statement failed, or there is no connection; the text is the database's.

    Attributes:
        is_refused: whether the values of the statement are why: they have the wrong type or size,
            or are against a constraint (SQLSTATE classes 22 and 23).
    """

    def __init__(self, text: str, *, is_refused: bool = False) -> None:
        super().__init__(text)
        self.is_refused = is_refused
