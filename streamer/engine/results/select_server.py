"""The process of one statement of SQL over results; it ends with the statement.

The statement may be anybody's. A function such as `repeat` passes DuckDB's memory limit and its
clock, so the process has limits of the system's, writes no file, and gives way to the streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from streamer.connectors.duckdb.child_server import MemoryBound, renounce_rights, serve_requests
from streamer.engine.results.duckdb_sandbox import MEMORY_LIMIT_BYTES, open_sandbox
from streamer.engine.results.query_model import ResultQueryError
from streamer.engine.results.sql_cells import encode_row

MAX_ANSWER_BYTES: Final = 16 << 20
"""Bytes that the rows of an answer have at most, as JSON."""

MEMORY_ERROR: Final = (
    "the answer takes more memory than it may; ask for less: one key, a shorter time"
)
_SPARE_BYTES: Final = 256 << 20
"""Memory of a statement beside what DuckDB counts."""

_MAX_FETCH_ROWS: Final = 256
_MAX_FETCH_BYTES: Final = 64 << 10
_NICENESS: Final = 10


class SelectServer:
    """Answers two requests: `open`, which loads what it takes, and `select`."""

    def __init__(self) -> None:
        """Begin without bounds; `open` sets them."""
        self._is_open = False

    def answer(self, header: dict[str, Any], body: bytearray) -> tuple[dict[str, Any], bytes]:
        """Return the answer to a request: its header, and the rows as lines of JSON."""
        try:
            if header["do"] == "open":
                self._open()
                return {}, b""
            assert self._is_open, "nothing is bounded yet"
            return select_rows(header)
        except ResultQueryError as error:
            return {"refused": str(error)}, b""
        except MemoryError:
            return {"refused": MEMORY_ERROR}, b""
        except Exception as error:
            return {"failed": f"{type(error).__name__}: {error}"}, b""

    def _open(self) -> None:
        import duckdb

        # A first connection, so that what the library keeps for itself is not counted.
        duckdb.connect(":memory:").close()
        renounce_rights(_NICENESS)
        MemoryBound().set(MEMORY_LIMIT_BYTES + _SPARE_BYTES)
        self._is_open = True


def select_rows(fields: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return the columns of a statement, whether its rows were cut, and the rows.

    Args:
        fields: `paths` of files, the statement `view` that makes the table of them, the statement
            `sql`, the `limit` of rows, and the `seconds` that it may take.

    Raises:
        ResultQueryError: the statement is wrong, or none that may be run, or took too much.
        duckdb.Error: a file cannot be read.
    """
    import duckdb

    paths, sql = [Path(path) for path in fields["paths"]], fields["sql"]
    with open_sandbox(paths, fields["seconds"]) as connection:
        _check_statement(connection, sql)
        connection.execute(fields["view"])
        try:
            connection.execute(sql)
            return _fetch_rows(connection, fields["limit"])
        except duckdb.InterruptException:
            raise
        except duckdb.OutOfMemoryException:
            raise ResultQueryError(MEMORY_ERROR) from None
        except duckdb.IOException as e:
            if any(str(path) in str(e) for path in paths):
                raise
            raise _statement_error(e) from None
        except (duckdb.Error, ValueError) as e:
            raise _statement_error(e) from None


def _check_statement(connection: Any, sql: str) -> None:
    import duckdb

    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as e:
        raise _statement_error(e) from None
    if len(statements) != 1:
        raise ResultQueryError(f"expected one SELECT, found {len(statements)} statements")
    kind = statements[0].type
    if kind != duckdb.StatementType.SELECT:
        raise ResultQueryError(
            f"expected a SELECT over results, found a statement of the kind {kind.name}; results "
            "are read only"
        )


def _fetch_rows(connection: Any, limit: int) -> tuple[dict[str, Any], bytes]:
    columns = [column[0] for column in connection.description or ()]
    lines: list[bytes] = []
    size, count = 0, 1
    while some := connection.fetchmany(count):
        before = size
        for row in some:
            line = b"" if len(lines) == limit else encode_row(row)
            size += len(line) + 1
            if not line or size > MAX_ANSWER_BYTES:
                if not lines:
                    raise ResultQueryError(
                        f"a row of the answer has {len(line):,} bytes, expected "
                        f"{MAX_ANSWER_BYTES:,} at most; select less of it"
                    )
                return {"columns": columns, "cut": True}, b"\n".join(lines)
            lines.append(line)
        # Rows that are large become Python's values one by one.
        count = min(2 * count, _MAX_FETCH_ROWS) if size - before < _MAX_FETCH_BYTES else 1
    return {"columns": columns, "cut": False}, b"\n".join(lines)


def _statement_error(error: Exception) -> ResultQueryError:
    return ResultQueryError(f"the statement cannot be run: {str(error).strip()}")


if __name__ == "__main__":
    serve_requests(SelectServer().answer)
