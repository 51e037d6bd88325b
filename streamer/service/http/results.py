"""The endpoint that finds the results of a stream's windows."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from aiohttp import hdrs, web

from streamer.endpoints.replies import error_reply
from streamer.engine.keeping import RESULTS
from streamer.service.http import schemas as s
from streamer.service.http.cutting import CUT, PARAMETER, cut_result
from streamer.service.http.endpoint import Asked, Endpoint, Parameter
from streamer.service.http.reading import as_number
from streamer.service.streams.manager import Manager
from streamer.value import dump_json

AT_ONCE: Final = 2
"""Questions that are answered at a time: each may take half a gigabyte."""

SECONDS: Final = 5.0
"""How long one may take."""

_PATIENCE: Final = 1.0
_BUSY: Final = "Too many ask at a time; ask again."
_PARAMETERS: Final = {
    "limit": s.INTEGER,
    "revisions": {"type": "string", "enum": ["latest", "all"]},
}
_ONLY: Final = Parameter("only", "The place of a result in the page: only this one.", s.INTEGER)
_PAGE: Final = {
    "type": "object",
    "properties": {
        "results": s.listed(s.obj(start=s.STRING, end=s.STRING, revision=s.INTEGER)),
        "next": s.MAYBE_STRING,
        "columns": s.listed(s.STRING),
        "rows": s.listed(s.listed(s.ANYTHING)),
        "cut": s.BOOLEAN,
    },
}


class ResultEndpoints:
    """The endpoint `/streams/{id}/results`."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager
        self._places = threading.BoundedSemaphore(AT_ONCE)

    def all(self) -> Iterator[Endpoint]:
        """Return it."""
        # Imported here: who runs no service should not wait for it.
        from streamer.retention.asking import PARAMETERS

        yield Endpoint(
            *("GET", "/streams/{id}/results", "read_results"),
            "Return what came out of a stream's windows, of those that it keeps (`retention`).",
            *(self._results, _PAGE),
            parameters=tuple(
                Parameter(name, about, _PARAMETERS.get(name, s.STRING))
                for name, about in PARAMETERS.items()
            )
            + (_ONLY, PARAMETER),
            codes={
                400: "The question makes no sense, or the answer took too long or too much.",
                404: "There is no such stream, or it keeps no results.",
                502: "The results cannot be read.",
                503: _BUSY,
            },
        )

    def _results(self, asked: Asked) -> web.Response:
        from streamer.retention.asking import answer
        from streamer.retention.layout import NoResultsError, RetentionError
        from streamer.retention.question import QuestionError

        managed = self._manager.registry.get(asked.path["id"])
        if not self._places.acquire(timeout=_PATIENCE):
            return error_reply(503, f"Error: {_BUSY}")
        try:
            directory = Path(managed.directory) / RESULTS
            query = dict(asked.query)
            only, longest = query.pop(_ONLY.name, None), query.pop(CUT, None)
            place = None if only is None else as_number(only, _ONLY.name)
            most = None if longest is None else as_number(longest, CUT)
            found = answer(directory, query, time.time_ns(), SECONDS)
            if "results" in found:
                if place is not None:
                    found["results"] = found["results"][place : place + 1]
                if most is not None:
                    found["results"] = [cut_result(one, most) for one in found["results"]]
        except QuestionError as e:
            return error_reply(400, f"Error: {e}")
        except NoResultsError:
            return error_reply(
                404,
                "Error: the stream keeps no results: give its window buffer the field retention "
                "(retention: 7d)",
            )
        except RetentionError as e:
            text = str(e).replace(str(managed.directory), managed.stream_id)
            return error_reply(502, f"Error: {text}")
        finally:
            self._places.release()
        return web.Response(body=dump_json(found), headers={hdrs.CONTENT_TYPE: "application/json"})
