"""The process of one query of a processor; see `child_server`."""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.duckdb.child_server import MemoryBound, serve_requests
from streamer.connectors.duckdb.errors import QueryError, error_fields
from streamer.connectors.duckdb.query_text import parse_query
from streamer.connectors.duckdb.session import QuerySession, memory_error, read_settings

_SPARE_BYTES: Final = 128 << 20
"""Memory of a query beside what DuckDB counts."""

_BODY_COPIES: Final = 3
"""How often the bytes of a batch may be in memory."""


class QueryServer:
    """Answers requests."""

    def __init__(self) -> None:
        """Begin without a session."""
        self._session: QuerySession | None = None
        self._bound: MemoryBound | None = None
        self._memory_bytes = 0
        self._table_bytes: dict[str, int] = {}

    def answer(self, header: dict[str, Any], body: bytearray) -> tuple[dict[str, Any], Any]:
        """Return the answer to a request: its header, and bytes."""
        try:
            match header["do"]:
                case "open":
                    settings = read_settings(header["settings"])
                    self._memory_bytes = settings.memory_bytes
                    self._session = QuerySession(settings)
                    self._limit_memory(0)
                    text = parse_query(settings.query)
                    names = None if text.names is None else sorted(text.names)
                    return {"tables": text.tables, "names": names}, b""
                case "table":
                    self._table_bytes[header["name"]] = len(body)
                    self._limit_memory(0)
                    self._opened().set_table(header["name"], _read_rows(body))
                    return {}, b""
                case "run":
                    self._limit_memory(len(body))
                    rows = _read_rows(body)
                    answer = self._opened().run(rows, header["batch"], header["seconds"])
                    return {"json_columns": list(answer.json_columns)}, answer.body
                case _:
                    self._limit_memory(len(body))
                    rows = _read_rows(body)
                    plan = self._opened().explain(rows, header["batch"], header["seconds"])
                    return {"plan": plan}, b""
        except QueryError as error:
            return error_fields(error), b""
        except MemoryError:
            return error_fields(memory_error(self._memory_bytes)), b""
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}", "line": 0, "column": 0}, b""

    def _opened(self) -> QuerySession:
        assert self._session is not None, "no session is open"
        return self._session

    def _limit_memory(self, body_bytes: int) -> None:
        """Bound what this process may allocate, beyond what it has with its first session."""
        if self._bound is None:
            self._bound = MemoryBound()
        data = (body_bytes + sum(self._table_bytes.values())) * _BODY_COPIES
        self._bound.set(2 * self._memory_bytes + data + _SPARE_BYTES)


def _read_rows(body: bytearray) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(pa.py_buffer(body)).read_all()


if __name__ == "__main__":
    serve_requests(QueryServer().answer)
