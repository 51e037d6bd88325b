"""The endpoints that make, change and remove streams: Benthos's, and ours beside them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

from streamer.plan.change_impact import ChangeImpact
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.history_endpoints import parse_history_query
from streamer.service.api.responses import json_response
from streamer.service.fleet import redacted_document
from streamer.service.fleet.errors import BadConfigError, BadRequestError
from streamer.service.fleet.manager import Manager
from streamer.service.monitoring.history_document import describe_slots

_CONFIG_ABOUT: Final = "The config, YAML or JSON."
_KINDS: Final = ("cache", "input", "output", "processor", "rate_limit")
_FILE_STREAM_TEXT: Final = "The stream belongs to a file, or the change would lose open windows."
_CREATE_CODES: Final = {
    400: "The config has findings, or the id is taken.",
    502: "It does not start.",
}
_HISTORY: Final = Parameter(
    "history",
    "How far back, such as `5m`: each stream has a field `history` then, the messages in and out "
    "by time as in `/streams/{id}/history`.",
    s.STRING,
)
_CHANGE_CODES: Final = {
    404: "There is no such stream.",
    409: _FILE_STREAM_TEXT,
    502: "It does not start.",
}


class StreamEndpoints:
    """The endpoints of `/streams` and `/resources`."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager
        self._deploys = manager.deploys

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        yield Endpoint(
            *("GET", "/streams", "list_streams", "List all streams with condition and figures."),
            *(self._list_streams, s.map_schema(s.STREAM_SUMMARY)),
            parameters=(_HISTORY,),
            codes={400: "`history` is no duration."},
        )
        yield Endpoint(
            *("POST", "/streams", "replace_streams"),
            "Replace all streams that came by API by those of an object of configs by id.",
            self._replace_all,
            parameters=(s.CHILLED, s.TIMEOUT, s.ON_RESET),
            body="An object of configs by stream id, YAML or JSON.",
            codes={400: "Configs have findings: then nothing is changed.", 409: _FILE_STREAM_TEXT},
            is_change=True,
            is_slow=True,
        )
        path = "/streams/{id}"
        yield from self._config_endpoints(path)
        yield from self._lifecycle_endpoints(path)
        yield Endpoint(
            *("POST", "/resources/{type}/{id}", "put_resource"),
            "Create or replace a resource that all streams may use. Types are "
            f"{', '.join(_KINDS)}.",
            self._put_resource,
            parameters=(s.CHILLED, s.TIMEOUT, s.ON_RESET),
            body="The component's config, YAML or JSON.",
            codes={
                400: "It has findings.",
                409: _FILE_STREAM_TEXT,
                502: "A stream does not start with it.",
            },
            is_change=True,
            is_slow=True,
        )

    def _config_endpoints(self, path: str) -> Iterator[Endpoint]:
        yield Endpoint(
            *("GET", path, "read_stream", "Return a stream with its config, without secrets."),
            *(self._read, s.STREAM),
            codes={404: "There is no such stream."},
        )
        yield Endpoint(
            *("POST", path, "create_stream", "Create a stream and start it.", self._create),
            s.CHANGE_RESULT,
            parameters=(s.CHILLED, s.TIMEOUT),
            body=_CONFIG_ABOUT,
            codes=_CREATE_CODES,
            is_change=True,
            is_slow=True,
        )
        more = (s.TIMEOUT, s.ON_RESET, s.ROLLBACK)
        yield Endpoint(
            *("PUT", path, "update_stream", "Replace the config of a stream.", self._update),
            s.CHANGE_RESULT,
            parameters=(s.CHILLED, *more),
            body=_CONFIG_ABOUT,
            codes=_CHANGE_CODES,
            is_change=True,
            is_slow=True,
        )
        yield Endpoint(
            *("PATCH", path, "patch_stream", "Merge an object into the config of a stream."),
            *(self._patch, s.CHANGE_RESULT),
            parameters=(s.CHILLED, *more),
            body="The changed part of the config, YAML or JSON.",
            codes=_CHANGE_CODES,
            is_change=True,
            is_slow=True,
        )
        yield Endpoint(
            *("DELETE", path, "delete_stream"),
            "Stop a stream, and remove it with its checkpoint and its revisions.",
            self._delete,
            parameters=(s.TIMEOUT,),
            codes={404: "There is no such stream.", 409: "The stream belongs to a file."},
            is_change=True,
            is_slow=True,
        )

    def _lifecycle_endpoints(self, path: str) -> Iterator[Endpoint]:
        unknown = {404: "There is no such stream."}
        yield Endpoint(
            *("POST", f"{path}/pause", "pause_stream"),
            "Pause a stream; its open windows and offsets are kept.",
            self._pause,
            parameters=(s.TIMEOUT,),
            codes=unknown,
            is_change=True,
            is_slow=True,
        )
        yield Endpoint(
            *("POST", f"{path}/resume", "resume_stream"),
            "Start a stream that is paused, has failed or has ended.",
            self._resume,
            codes={**unknown, 502: "It does not start."},
            is_change=True,
            is_slow=True,
        )
        yield Endpoint(
            *("POST", f"{path}/rollback", "rollback_stream"),
            "Deploy an older revision again, as a new one.",
            *(self._rollback, s.CHANGE_RESULT),
            parameters=(
                Parameter(
                    "revision",
                    "Its number; without it, the newest that differs from the running one and "
                    "has not been rolled back.",
                    s.INTEGER,
                ),
                *(s.TIMEOUT, s.ON_RESET, s.ROLLBACK),
            ),
            codes={**_CHANGE_CODES, 400: "There is no such revision."},
            is_change=True,
            is_slow=True,
        )

    def _list_streams(self, request: ApiRequest) -> web.Response:
        rows = self._manager.registry.list_statuses()
        if "history" in request.query:
            query = parse_history_query({"from": request.query["history"], "figures": "in,out"})
            for name, one in self._manager.registry.streams().items():
                if name in rows:  # else it has come since
                    rows[name]["history"] = describe_slots(one.figures, query)
        return json_response(rows)

    def _read(self, request: ApiRequest) -> web.Response:
        stream_id = request.path["id"]
        registry = self._manager.registry
        refused = registry.refused_files.get(stream_id)
        managed = registry.streams().get(stream_id)
        if managed is None and refused is not None:
            return json_response({**refused.to_status(time.time()), "config": None})
        status = registry.get(stream_id).status()
        refusal = None if refused is None else refused.to_document()
        config = self._manager.redact_config(stream_id)
        return json_response({**status, "refusal": refusal, "config": config})

    def _replace_all(self, request: ApiRequest) -> web.Response:
        configs = redacted_document.parse_document(request.body)
        if not isinstance(configs, dict):
            raise BadConfigError(["(1,1) expected an object of configs by stream id"])
        texts = {name: redacted_document.format_yaml(value) for name, value in configs.items()}
        self._deploys.replace_all(texts, request.options)
        return web.Response()

    def _create(self, request: ApiRequest) -> web.Response:
        self._deploys.create(request.path["id"], request.body, request.options)
        return json_response({"revision": 1, "judgement": None})

    def _update(self, request: ApiRequest) -> web.Response:
        stream_id = request.path["id"]
        return self._change_response(
            stream_id, self._deploys.update(stream_id, request.body, request.options)
        )

    def _patch(self, request: ApiRequest) -> web.Response:
        stream_id = request.path["id"]
        return self._change_response(
            stream_id, self._deploys.patch(stream_id, request.body, request.options)
        )

    def _delete(self, request: ApiRequest) -> web.Response:
        self._deploys.delete(request.path["id"], request.options)
        return web.Response()

    def _pause(self, request: ApiRequest) -> web.Response:
        self._deploys.pause(request.path["id"], request.options)
        return web.Response()

    def _resume(self, request: ApiRequest) -> web.Response:
        self._deploys.resume(request.path["id"], request.options)
        return web.Response()

    def _rollback(self, request: ApiRequest) -> web.Response:
        stream_id, revision_text = request.path["id"], request.query.get("revision")
        number: int | None = None
        if revision_text is not None:
            if (
                not revision_text.isascii()
                or not revision_text.isdecimal()
                or len(revision_text) > 9
            ):
                raise BadRequestError(f"revision is {revision_text[:20]!r}; expected a number")
            number = int(revision_text)
        return self._change_response(
            stream_id, self._deploys.rollback(stream_id, number, request.options)
        )

    def _put_resource(self, request: ApiRequest) -> web.Response:
        kind = request.path["type"]
        if kind not in _KINDS:
            raise BadRequestError(f"there are no resources of type {kind!r}: {', '.join(_KINDS)}")
        changed = self._manager.resources.put_resource(
            kind, request.path["id"], request.body, request.options
        )
        return json_response({"streams": changed})

    def _change_response(self, stream_id: str, judgement: ChangeImpact) -> web.Response:
        # It may have been removed by somebody else meanwhile.
        managed = self._manager.registry.streams().get(stream_id)
        number = managed.revision.number if managed is not None else 0
        document: dict[str, Any] = {"revision": number, "judgement": judgement.as_dict()}
        return json_response(document)
