"""Errors of databases."""

from __future__ import annotations

from streamer.core.errors import StreamerError


class SqlError(StreamerError):
    """A statement failed, or there is no connection; the text is the database's.

    Attributes:
        is_refused: whether the values of the statement are why: they have the wrong type or size,
            or are against a constraint (SQLSTATE classes 22 and 23).
        repeats_row: whether one statement would change a row twice (SQLSTATE 21000).
        is_deadlock: whether the transaction has lost against another one that wanted the same rows
            in another order (SQLSTATE 40001 and 40P01; 1213 of MySQL).
    """

    def __init__(
        self,
        text: str,
        *,
        is_refused: bool = False,
        repeats_row: bool = False,
        is_deadlock: bool = False,
    ) -> None:
        super().__init__(text)
        self.is_refused = is_refused
        self.repeats_row = repeats_row
        self.is_deadlock = is_deadlock
