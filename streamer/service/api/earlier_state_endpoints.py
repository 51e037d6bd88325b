"""The endpoints of the states that a stream had after earlier micro-batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import web

from streamer.core.errors import StreamerError
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.request_parsing import parse_number
from streamer.service.api.responses import json_response
from streamer.service.api.window_endpoints import MAX_QUERY_KEY_CHARS
from streamer.service.fleet.errors import BadRequestError, RefusedError
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.manager import Manager
from streamer.service.run.earlier_states import EarlierStates
from streamer.service.run.stream_host import StreamHost
from streamer.window.inspect.window_query import MAX_ROWS

_PATH: Final = "/streams/{id}/states"
_CODES: Final = {
    400: "A parameter has a wrong value.",
    404: "There is no such stream.",
    409: "The stream does not run, the state is not kept, or it cannot be read; the text says why.",
}
_PAGE: Final = (
    Parameter("key", "Lists only windows with just this key.", s.STRING),
    Parameter("limit", f"How many, at most {MAX_ROWS} (50).", s.INTEGER),
    Parameter("offset", "How many are passed over (0).", s.INTEGER),
)
_TO: Final = Parameter("to", "The other micro-batch (the newest).", s.INTEGER)
_WINDOW: Final = s.object_schema(
    **{name: s.STRING for name in ("buffer",)},
    **{name: s.MAYBE_STRING for name in ("key", "side", "start", "end", "closes")},
    messages=s.MAYBE_INTEGER,
    bytes=s.MAYBE_INTEGER,
)
_CHANGE: Final = s.object_schema(
    change={"type": "string", "enum": ["opened", "closed", "changed"]},
    **{name: s.MAYBE_STRING for name in ("buffer", "key", "side", "start")},
    fields=s.map_schema(s.list_schema(s.ANYTHING)),
)
_DEFAULT_LIMIT: Final = 50


class EarlierStateEndpoints:
    """`/streams/{id}/states`: the micro-batches, the windows after one, the differences of two."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager
        self._states = EarlierStates()

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        batches = s.list_schema(s.object_schema(micro_batch=s.INTEGER, at=s.STRING))
        yield Endpoint(
            *("GET", _PATH, "list_states"),
            "Return the micro-batches whose states are still in the checkpoint, the oldest first.",
            *(self._list, s.object_schema(micro_batches=batches)),
            codes=_CODES,
            is_slow=True,
        )
        yield Endpoint(
            *("GET", f"{_PATH}/{{number}}", "read_state"),
            "Return the windows that were open after a micro-batch, the oldest first.",
            self._read,
            s.object_schema(
                micro_batch=s.INTEGER,
                windows=s.list_schema(_WINDOW),
                total=s.INTEGER,
                complete=s.BOOLEAN,
            ),
            parameters=_PAGE,
            codes=_CODES,
            is_slow=True,
        )
        yield Endpoint(
            *("GET", f"{_PATH}/{{number}}/diff", "compare_states"),
            "Return the windows that were opened, closed or changed between two micro-batches.",
            self._compare,
            s.object_schema(
                **{"from": s.INTEGER},
                to=s.INTEGER,
                changes=s.list_schema(_CHANGE),
                total=s.INTEGER,
            ),
            parameters=(_TO, *_PAGE),
            codes=_CODES,
            is_slow=True,
        )

    def _list(self, request: ApiRequest) -> web.Response:
        managed, host = self._find_host(request)
        with _refusing(managed, host):
            return json_response({"micro_batches": self._states.list_batches(host)})

    def _read(self, request: ApiRequest) -> web.Response:
        managed, host = self._find_host(request)
        batch = parse_number(request.path["number"], "the micro-batch")
        key, limit, offset = _parse_page(request)
        with _refusing(managed, host):
            listing = self._states.list_windows(host, batch, key, _count_bytes(managed))
        document = {
            "micro_batch": batch,
            "windows": listing.windows[offset : offset + limit],
            "total": len(listing.windows),
            "complete": listing.is_complete,
        }
        return json_response(managed.redact_value(document))

    def _compare(self, request: ApiRequest) -> web.Response:
        managed, host = self._find_host(request)
        since = parse_number(request.path["number"], "the micro-batch")
        key, limit, offset = _parse_page(request)
        given = request.query.get("to")
        with _refusing(managed, host):
            if given:
                until = parse_number(given, "to")
            else:
                batches = self._states.list_batches(host)
                until = batches[-1]["micro_batch"] if batches else since
            changes = self._states.compare(host, (since, until), key, _count_bytes(managed))
        document = {
            **{"from": since, "to": until},
            "changes": changes[offset : offset + limit],
            "total": len(changes),
        }
        return json_response(managed.redact_value(document))

    def _find_host(self, request: ApiRequest) -> tuple[ManagedStream, StreamHost]:
        stream_id = request.path["id"]
        managed = self._manager.registry.get(stream_id)
        run = managed.run
        host = run.host if run is not None else None
        if host is None or host.session is None or host.current_stream is None:
            raise RefusedError(
                f"{stream_id} is {managed.lifecycle.state}, and states are read beside a stream "
                "that runs: resume it, or use `streamer state` on its checkpoint"
            )
        return managed, host


def _parse_page(request: ApiRequest) -> tuple[str | None, int, int]:
    """Return the key, the limit and the offset that a request has."""
    given = request.query
    key = given.get("key") or None
    if key is not None and len(key) > MAX_QUERY_KEY_CHARS:
        raise BadRequestError(f"key has more than {MAX_QUERY_KEY_CHARS:,} characters")
    limit = parse_number(given.get("limit", str(_DEFAULT_LIMIT)), "limit")
    return key, min(limit, MAX_ROWS), parse_number(given.get("offset", "0"), "offset")


@contextmanager
def _refusing(managed: ManagedStream, host: StreamHost) -> Iterator[None]:
    """Refuse the request if a state cannot be read; the reason names no place on the disk."""
    try:
        yield
    except BadRequestError:
        raise
    except StreamerError as e:
        text = str(e).replace(str(host.checkpoint), managed.stream_id)
        raise RefusedError(f"{managed.stream_id}: {text}") from None


def _count_bytes(managed: ManagedStream) -> int:
    return managed.view.current_state().snapshot.size
