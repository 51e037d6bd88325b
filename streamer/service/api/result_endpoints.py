"""The endpoints that find the results of a stream's windows."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from aiohttp import hdrs, web

from streamer.connectors.http_server.replies import error_reply
from streamer.core.errors import StreamerError
from streamer.core.json.dump import dump_json
from streamer.engine.results.results_directory import RESULTS_DIRECTORY
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.request_parsing import parse_number
from streamer.service.api.result_downloads import ResultDownloads
from streamer.service.api.result_errors import result_error_reply
from streamer.service.api.truncation import CUT_FIELD, CUT_PARAMETER, truncate_result
from streamer.service.fleet.manager import Manager

MAX_CONCURRENT_QUERIES: Final = 2
"""Questions that are answered at a time: each may take half a gigabyte."""

MAX_PENDING_QUERIES: Final = 16
"""Questions that are answered or wait at a time, in threads of their own: others are refused."""

QUERY_TIMEOUT_S: Final = 5.0
"""How long one may take."""

_ACQUIRE_TIMEOUT_S: Final = 1.0
_BUSY_TEXT: Final = "Too many queries run at the moment; try again."
_PARAMETER_SCHEMAS: Final = {
    "limit": s.INTEGER,
    "order": {"type": "string", "enum": ["oldest", "newest"]},
    "revisions": {"type": "string", "enum": ["latest", "all"]},
}
_ONLY_PARAMETER: Final = Parameter(
    "only", "The place of a result in the page: only this one.", s.INTEGER
)
_PAGE_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "results": s.list_schema(s.object_schema(start=s.STRING, end=s.STRING, revision=s.INTEGER)),
        "next": s.MAYBE_STRING,
        "columns": s.list_schema(s.STRING),
        "rows": s.list_schema(s.list_schema(s.ANYTHING)),
        "cut": s.BOOLEAN,
    },
}


class ResultEndpoints:
    """The endpoints below `/streams/{id}/results`."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager
        self._query_slots = threading.BoundedSemaphore(MAX_CONCURRENT_QUERIES)
        self._pool = ThreadPoolExecutor(MAX_PENDING_QUERIES, "results")
        self._pending_count = 0
        self._downloads = ResultDownloads(manager, self._wait_for_slot)

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        # Imported here: who runs no service should not wait for it.
        from streamer.engine.results.http_query import PARAMETERS

        parameters = tuple(
            Parameter(name, about, _PARAMETER_SCHEMAS.get(name, s.STRING))
            for name, about in PARAMETERS.items()
        )
        yield from self._downloads.list_endpoints(parameters)
        yield Endpoint(
            *("GET", "/streams/{id}/results", "read_results"),
            "Return the kept results of a stream's windows (`retention`).",
            *(self._results, _PAGE_SCHEMA),
            parameters=(*parameters, _ONLY_PARAMETER, CUT_PARAMETER),
            codes={
                400: "The question makes no sense, or the answer took too long or too much.",
                404: "There is no such stream, or it keeps no results.",
                502: "The results cannot be read.",
                503: _BUSY_TEXT,
            },
            is_awaited=True,
        )

    def close(self) -> None:
        """Let the threads go."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _results(self, request: ApiRequest) -> web.Response:
        if self._pending_count >= MAX_PENDING_QUERIES:
            return error_reply(503, f"Error: {_BUSY_TEXT}")
        self._pending_count += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, self._find_results, request)
        finally:
            self._pending_count -= 1

    def _find_results(self, request: ApiRequest) -> web.Response:
        from streamer.engine.results.http_query import answer_query

        managed = self._manager.registry.get(request.path["id"])
        if not self._query_slots.acquire(timeout=_ACQUIRE_TIMEOUT_S):
            return error_reply(503, f"Error: {_BUSY_TEXT}")
        try:
            directory = Path(managed.directory) / RESULTS_DIRECTORY
            query = dict(request.query)
            only_text, cut_text = query.pop(_ONLY_PARAMETER.name, None), query.pop(CUT_FIELD, None)
            position = None if only_text is None else parse_number(only_text, _ONLY_PARAMETER.name)
            max_characters = None if cut_text is None else parse_number(cut_text, CUT_FIELD)
            page = answer_query(
                directory, query, time.time_ns(), QUERY_TIMEOUT_S, request.is_abandoned
            )
            if "results" in page:
                if position is not None:
                    page["results"] = page["results"][position : position + 1]
                if max_characters is not None:
                    page["results"] = [
                        truncate_result(one, max_characters) for one in page["results"]
                    ]
        except StreamerError as e:
            return result_error_reply(e, managed)
        finally:
            self._query_slots.release()
        return web.Response(body=dump_json(page), headers={hdrs.CONTENT_TYPE: "application/json"})

    @contextmanager
    def _wait_for_slot(self) -> Iterator[None]:
        """Take a place among those who query, for one page of a file."""
        with self._query_slots:
            yield
