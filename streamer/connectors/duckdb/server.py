"""The process of one query: it answers frames on its standard input until that is closed.

A query may take more memory than DuckDB counts: texts that functions make are not in its limit. So
the process has a limit of the system's, and is of no use to anybody else when it ends by it.
"""

from __future__ import annotations

import os
import resource
import select
import socket
import threading
from typing import Any, Final

from streamer.connectors.duckdb.errors import QueryError, error_fields
from streamer.connectors.duckdb.frames import receive_frame, send_frame
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
        """Bound what this process may allocate."""
        data = body_bytes * _BODY_COPIES + sum(self._table_bytes.values()) * _BODY_COPIES
        limit = _own_bytes() + 2 * self._memory_bytes + data + _SPARE_BYTES
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


_own: list[int] = []


def _own_bytes() -> int:
    """Return what the process had allocated when it was first looked at."""
    if not _own:
        with open("/proc/self/statm") as file:
            _own.append(int(file.read().split()[5]) * resource.getpagesize())
    return _own[0]


def _read_rows(body: bytearray) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(pa.py_buffer(body)).read_all()


def _end_with(connection: socket.socket) -> None:
    """End this process when the other side is gone, also in the middle of a query."""
    poll = select.poll()
    poll.register(connection, select.POLLHUP | getattr(select, "POLLRDHUP", 0))
    poll.poll()
    os._exit(0)


def main() -> None:
    """Answer requests until the other side is gone."""
    connection = socket.socket(fileno=os.dup(0))
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    server = QueryServer()
    try:
        while True:
            header, body = receive_frame(connection)
            answer, content = server.answer(header, body)
            del body
            send_frame(connection, answer, content)
            del content
    except (EOFError, OSError):
        # The worker has ended.
        os._exit(0)


if __name__ == "__main__":
    main()
