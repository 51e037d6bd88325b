"""The endpoints that make, change and remove streams: Benthos's, and ours beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

from streamer.plan.judgement import Judgement
from streamer.service.http import schemas as s
from streamer.service.http.answers import as_json
from streamer.service.http.endpoint import Asked, Endpoint, Parameter
from streamer.service.streams import raw
from streamer.service.streams.faults import BadConfigError, BadRequestError
from streamer.service.streams.manager import Manager
from streamer.service.vitals import vitals

_CONFIG: Final = "The config, YAML or JSON."
_KINDS: Final = ("cache", "input", "output", "processor", "rate_limit")
_OF_FILE: Final = "The stream is that of a file, or the change would lose what it keeps."
_MADE: Final = {400: "The config has findings, or the id is taken.", 502: "It does not start."}
_CHANGED: Final = {404: "There is no such stream.", 409: _OF_FILE, 502: "It does not start."}


class StreamEndpoints:
    """The endpoints of `/streams` and `/resources`."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager
        self._deploys = manager.deploys

    def all(self) -> Iterator[Endpoint]:
        """Return them."""
        yield Endpoint(
            *("GET", "/streams", "list_streams", "List all streams with what they do."),
            *(self._list, s.by_id(s.LISTED)),
        )
        yield Endpoint(
            *("POST", "/streams", "replace_streams"),
            "Replace all streams that came by API by those of an object of configs by id.",
            self._replace_all,
            parameters=(s.CHILLED, s.TIMEOUT, s.ON_RESET),
            body="An object of configs by stream id, YAML or JSON.",
            codes={400: "Configs have findings: then nothing is changed.", 409: _OF_FILE},
            changes=True,
            slow=True,
        )
        path = "/streams/{id}"
        yield Endpoint(
            *("GET", path, "read_stream", "Return a stream with its config, without secrets."),
            *(self._read, s.ONE),
            codes={404: "There is no such stream."},
        )
        yield Endpoint(
            *("POST", path, "create_stream", "Make a stream and start it.", self._create),
            s.CHANGED,
            parameters=(s.CHILLED, s.TIMEOUT),
            body=_CONFIG,
            codes=_MADE,
            changes=True,
            slow=True,
        )
        more = (s.TIMEOUT, s.ON_RESET, s.ROLLBACK)
        yield Endpoint(
            *("PUT", path, "update_stream", "Let a stream run another config.", self._update),
            s.CHANGED,
            parameters=(s.CHILLED, *more),
            body=_CONFIG,
            codes=_CHANGED,
            changes=True,
            slow=True,
        )
        yield Endpoint(
            *("PATCH", path, "patch_stream", "Merge an object into a stream's config."),
            *(self._patch, s.CHANGED),
            parameters=(s.CHILLED, *more),
            body="The part of the config that is another, YAML or JSON.",
            codes=_CHANGED,
            changes=True,
            slow=True,
        )
        yield Endpoint(
            *("DELETE", path, "delete_stream"),
            "Stop a stream, and remove it with its checkpoint and its revisions.",
            self._delete,
            parameters=(s.TIMEOUT,),
            codes={404: "There is no such stream.", 409: "The stream is that of a file."},
            changes=True,
            slow=True,
        )
        yield from self._moves(path)
        yield Endpoint(
            *("POST", "/resources/{type}/{id}", "put_resource"),
            "Make a resource that all streams may refer to, or another one of it. Types are "
            f"{', '.join(_KINDS)}.",
            self._resource,
            parameters=(s.CHILLED, s.TIMEOUT, s.ON_RESET),
            body="The component's config, YAML or JSON.",
            codes={400: "It has findings.", 409: _OF_FILE, 502: "A stream does not start with it."},
            changes=True,
            slow=True,
        )

    def _moves(self, path: str) -> Iterator[Endpoint]:
        unknown = {404: "There is no such stream."}
        yield Endpoint(
            *("POST", f"{path}/pause", "pause_stream"),
            "Stop a stream for now; its open windows and offsets stay.",
            self._pause,
            parameters=(s.TIMEOUT,),
            codes=unknown,
            changes=True,
            slow=True,
        )
        yield Endpoint(
            *("POST", f"{path}/resume", "resume_stream"),
            "Start a stream that is paused, has failed or has ended.",
            self._resume,
            codes={**unknown, 502: "It does not start."},
            changes=True,
            slow=True,
        )
        yield Endpoint(
            *("POST", f"{path}/rollback", "rollback_stream"),
            "Deploy an older revision again, as a new one.",
            *(self._rollback, s.CHANGED),
            parameters=(
                Parameter(
                    "revision",
                    "Its number; when left out, the newest that is another than what runs and has "
                    "not failed on probation.",
                    s.INTEGER,
                ),
                *(s.TIMEOUT, s.ON_RESET, s.ROLLBACK),
            ),
            codes={**_CHANGED, 400: "There is no such revision."},
            changes=True,
            slow=True,
        )

    def _list(self, asked: Asked) -> web.Response:
        streams = self._manager.registry.streams()
        return as_json(
            {name: {**one.status(), **vitals(one.view)} for name, one in streams.items()}
        )

    def _read(self, asked: Asked) -> web.Response:
        stream_id = asked.path["id"]
        status = self._manager.registry.get(stream_id).status()
        return as_json({**status, "config": self._manager.shown(stream_id)})

    def _replace_all(self, asked: Asked) -> web.Response:
        found = raw.document(asked.body)
        if not isinstance(found, dict):
            raise BadConfigError(["(1,1) expected an object of configs by stream id"])
        texts = {name: raw.written(value) for name, value in found.items()}
        self._deploys.replace_all(texts, asked.wish)
        return web.Response()

    def _create(self, asked: Asked) -> web.Response:
        self._deploys.create(asked.path["id"], asked.body, asked.wish)
        return as_json({"revision": 1, "judgement": None})

    def _update(self, asked: Asked) -> web.Response:
        stream_id = asked.path["id"]
        return self._changed(stream_id, self._deploys.update(stream_id, asked.body, asked.wish))

    def _patch(self, asked: Asked) -> web.Response:
        stream_id = asked.path["id"]
        return self._changed(stream_id, self._deploys.patch(stream_id, asked.body, asked.wish))

    def _delete(self, asked: Asked) -> web.Response:
        self._deploys.delete(asked.path["id"], asked.wish)
        return web.Response()

    def _pause(self, asked: Asked) -> web.Response:
        self._deploys.pause(asked.path["id"], asked.wish)
        return web.Response()

    def _resume(self, asked: Asked) -> web.Response:
        self._deploys.resume(asked.path["id"], asked.wish)
        return web.Response()

    def _rollback(self, asked: Asked) -> web.Response:
        stream_id, given = asked.path["id"], asked.query.get("revision")
        number: int | None = None
        if given is not None:
            if not given.isascii() or not given.isdecimal() or len(given) > 9:
                raise BadRequestError(f"revision is {given[:20]!r}; expected a number")
            number = int(given)
        return self._changed(stream_id, self._deploys.rollback(stream_id, number, asked.wish))

    def _resource(self, asked: Asked) -> web.Response:
        kind = asked.path["type"]
        if kind not in _KINDS:
            raise BadRequestError(f"there are no resources of type {kind!r}: {', '.join(_KINDS)}")
        changed = self._manager.resources.put(kind, asked.path["id"], asked.body, asked.wish)
        return as_json({"streams": changed})

    def _changed(self, stream_id: str, judgement: Judgement) -> web.Response:
        # It may have been removed by somebody else meanwhile.
        managed = self._manager.registry.streams().get(stream_id)
        number = managed.revision.number if managed is not None else 0
        found: dict[str, Any] = {"revision": number, "judgement": judgement.as_dict()}
        return as_json(found)
