"""Errors of DuckDB: their texts and their places in a query."""

from __future__ import annotations

import json
from typing import Any

from streamer.core.errors import StreamerError


class QueryError(StreamerError):
    """A query that DuckDB does not run, or that took too much.

    Attributes:
        line: the place in the query, from 1; 0 where DuckDB names none.
        column: likewise.
    """

    def __init__(self, text: str, line: int = 0, column: int = 0) -> None:
        """Take what is wrong, and where in the query."""
        super().__init__(text)
        self.line, self.column = line, column


def locate_byte(sql: str, offset: int) -> tuple[int, int]:
    r"""Return the line and the column, both from 1, of a byte of a text's UTF-8.

    Example:
        >>> locate_byte("select é,\n  b", 13)
        (2, 3)
    """
    before = sql.encode(errors="surrogatepass")[: max(0, offset)].decode(errors="replace")
    line = before.count("\n")
    return line + 1, len(before) - (before.rfind("\n") + 1) + 1


def read_error(error: Exception, sql: str, prefix: str = "") -> QueryError:
    """Return an error of DuckDB's, whose texts are JSON (`errors_as_json`), with its place.

    Args:
        error: the error.
        sql: the query.
        prefix: stood before the query when it was run.
    """
    kind, _, rest = str(error).partition(": ")
    try:
        fields = json.loads(rest)
        text = f"{kind}: {fields['exception_message']}"
        offset = int(fields["position"]) if "position" in fields else None
    except (ValueError, KeyError, TypeError):
        return QueryError(join_lines(str(error)))
    if offset is None or offset < len(prefix):
        return QueryError(join_lines(text))
    return QueryError(join_lines(text), *locate_byte(sql, offset - len(prefix)))


def join_lines(text: str) -> str:
    """Return a text on one line."""
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def error_fields(error: QueryError) -> dict[str, Any]:
    """Return an error as JSON has it, for another process."""
    return {"error": str(error), "line": error.line, "column": error.column}
