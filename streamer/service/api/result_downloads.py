"""The endpoint that gives the results of a stream's windows as a file."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from aiohttp import hdrs, web

from streamer.connectors.http_server.replies import error_reply
from streamer.core.errors import StreamerError
from streamer.engine.results.results_directory import RESULTS_DIRECTORY
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.result_errors import result_error_reply
from streamer.service.api.spooled_file import SpooledFile
from streamer.service.fleet.errors import BadRequestError
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.manager import Manager

MAX_CONCURRENT_EXPORTS: Final = 2
"""Files that are written at a time."""

MAX_OPEN_FILES: Final = 8
"""Files that are written or sent at a time: each takes room on the disk."""

PAGE_TIMEOUT_S: Final = 10.0
"""How long the query of one page may take."""

ROWS_HEADER: Final = "X-Results"
CUT_HEADER: Final = "X-Results-Cut"
_BUSY_TEXT: Final = "Too many downloads at a time; try again."
_MEDIA_TYPES: Final[Mapping[str, str]] = {
    "csv": "text/csv; charset=utf-8; header=present",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
_FORMATS: Final = tuple(_MEDIA_TYPES)
_FORMAT_PARAMETER: Final = Parameter(
    "format", "The format of the file.", {"type": "string", "enum": list(_FORMATS)}
)

QuerySlot = Callable[[], AbstractContextManager[None]]
"""Gives a place among those who query results; waits for one."""


class ResultDownloads:
    """The endpoint `/streams/{id}/results/download`."""

    def __init__(self, manager: Manager, query_slot: QuerySlot) -> None:
        """Take the streams, and what a query of results waits for."""
        self._manager = manager
        self._query_slot = query_slot
        self._export_slots = threading.BoundedSemaphore(MAX_CONCURRENT_EXPORTS)
        self._open: weakref.WeakSet[SpooledFile] = weakref.WeakSet()

    def list_endpoints(self, parameters: tuple[Parameter, ...]) -> Iterator[Endpoint]:
        """Return the endpoint; `parameters` say which results."""
        yield Endpoint(
            *("GET", "/streams/{id}/results/download", "download_results"),
            "Return results of a stream's windows as a file: CSV, JSON lines, or Parquet. The "
            f"header {ROWS_HEADER} has their number, and {CUT_HEADER} says whether there are more.",
            self._download,
            parameters=(_FORMAT_PARAMETER, *parameters),
            codes={
                400: "The question makes no sense, or the answer took too long or too much.",
                404: "There is no such stream, or it keeps no results.",
                502: "The results cannot be read.",
                503: _BUSY_TEXT,
            },
            is_awaited=True,
            media_types=tuple(_MEDIA_TYPES.values()),
        )

    async def _download(self, request: ApiRequest) -> web.StreamResponse:
        query = dict(request.query)
        form = query.pop(_FORMAT_PARAMETER.name, "csv")
        if form not in _FORMATS:
            raise BadRequestError(f"format is {form[:20]!r}, expected {', '.join(_FORMATS)}")
        managed = self._manager.registry.get(request.path["id"])
        opened = sum(one.is_open for one in list(self._open))
        if opened >= MAX_OPEN_FILES or not self._export_slots.acquire(blocking=False):
            return error_reply(503, f"Error: {_BUSY_TEXT}")
        # The place is given back where the file is written: the one who asked may be gone by then.
        answer = await asyncio.to_thread(
            self._write_file, managed, form, query, request.is_abandoned
        )
        if isinstance(answer, SpooledFile):
            self._open.add(answer)
        return answer

    def _write_file(
        self,
        managed: ManagedStream,
        form: str,
        query: Mapping[str, str],
        is_abandoned: Callable[[], bool],
    ) -> web.StreamResponse:
        directory = self._manager.registry.checkpoints.service_directory
        # The answer closes it.
        file = cast(BinaryIO, tempfile.TemporaryFile(dir=directory))  # noqa: SIM115
        try:
            summary = self._export(file, managed, form, query, is_abandoned)
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
        except StreamerError as e:
            file.close()
            return result_error_reply(e, managed)
        except BaseException:
            file.close()
            raise
        finally:
            self._export_slots.release()
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        name = f"{managed.stream_id}-results-{stamp}.{form}"
        return SpooledFile(
            file,
            size,
            {
                hdrs.CONTENT_TYPE: _MEDIA_TYPES[form],
                hdrs.CONTENT_DISPOSITION: f'attachment; filename="{name}"',
                "X-Content-Type-Options": "nosniff",
                ROWS_HEADER: str(summary.rows),
                CUT_HEADER: str(summary.cut).lower(),
            },
        )

    def _export(
        self,
        file: BinaryIO,
        managed: ManagedStream,
        form: str,
        query: Mapping[str, str],
        is_abandoned: Callable[[], bool],
    ) -> Any:
        from streamer.engine.results.exports import (
            MAX_EXPORT_RESULTS,
            export_results,
            export_table,
        )
        from streamer.engine.results.http_query import parse_query, run_sql
        from streamer.engine.results.query import find_results
        from streamer.engine.results.query_model import MAX_RESULTS, ResultPage, ResultQuery

        directory = Path(managed.directory) / RESULTS_DIRECTORY
        if "sql" in query:
            with self._query_slot():
                whole = {"limit": str(MAX_RESULTS), **query}
                table = run_sql(directory, whole, time.time_ns(), PAGE_TIMEOUT_S, is_abandoned)
            return export_table(file, form, table)

        def read_page(page: ResultQuery) -> ResultPage:
            with self._query_slot():
                return find_results(directory, page, time.time_ns(), PAGE_TIMEOUT_S)

        whole = {"limit": str(MAX_EXPORT_RESULTS), **query}
        return export_results(file, form, parse_query(whole), read_page)
