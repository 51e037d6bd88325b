"""The endpoints that show what streams do."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from aiohttp import web

from streamer.core.durations import SECOND
from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.clock_blame import ClockBlame
from streamer.engine.report.stream_metrics import Snapshot
from streamer.plan import make_plan
from streamer.plan.explain import explain
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint
from streamer.service.api.log_lines import LOG_PARAMETERS, select_log_lines
from streamer.service.api.request_parsing import parse_number
from streamer.service.api.responses import json_response
from streamer.service.fleet.errors import BadRequestError
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.manager import Manager
from streamer.service.monitoring.decision_answers import describe_blame
from streamer.service.monitoring.exposition import metrics_by_name
from streamer.service.monitoring.readiness import check_readiness
from streamer.service.monitoring.stream_summary import summarise_stream
from streamer.service.monitoring.stream_view import shown_figures

_UNKNOWN_STREAM_CODES: Final = {404: "There is no such stream."}


class ReadEndpoints:
    """The endpoints below `/streams/{id}` that change nothing."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        path = "/streams/{id}"
        for name, about, handler, schema in (
            ("stats", "Return the metrics of a stream.", self._stats, s.map_schema(s.ANYTHING)),
            (
                "progress",
                "Return the condition, position and figures of a stream.",
                self._progress,
                s.PROGRESS,
            ),
            (
                "plan",
                "Return the plan of a stream: its stages, shards and windows.",
                self._plan,
                s.map_schema(s.ANYTHING),
            ),
            ("lint", "Return the findings about a stream's config.", self._lint, _LINT_SCHEMA),
            (
                "revisions",
                "Return the revisions, newest first.",
                self._revisions,
                _REVISIONS_SCHEMA,
            ),
        ):
            yield Endpoint(
                *("GET", f"{path}/{name}", f"read_{name}", about, handler, schema),
                codes=_UNKNOWN_STREAM_CODES,
            )
        yield Endpoint(
            *("GET", f"{path}/revisions/{{number}}", "read_revision"),
            "Return a revision with its config, without secrets.",
            *(self._revision, {**s.REVISION}),
            codes={**_UNKNOWN_STREAM_CODES, 400: "There is no such revision."},
        )
        yield Endpoint(
            *("GET", f"{path}/logs", "read_logs", "Return the newest lines of a stream's log."),
            *(self._logs, s.list_schema(s.LOG_LINE)),
            parameters=LOG_PARAMETERS,
            codes={**_UNKNOWN_STREAM_CODES, 400: "A parameter is no number."},
        )
        yield Endpoint(
            *("GET", "/{id}/ready", "read_ready"),
            "Return 200 when a stream's input and output are connected, else 503.",
            *(self._ready, s.READY),
            codes={**_UNKNOWN_STREAM_CODES, 503: "They are not."},
        )

    def _get_stream(self, request: ApiRequest) -> ManagedStream:
        return self._manager.registry.get(request.path["id"])

    def _stats(self, request: ApiRequest) -> web.Response:
        managed = self._get_stream(request)
        return json_response({**metrics_by_name(managed.view), "uptime_ns": managed.uptime_ns()})

    def _progress(self, request: ApiRequest) -> web.Response:
        registry, stream_id = self._manager.registry, request.path["id"]
        refused = registry.refused_files.get(stream_id)
        if refused is not None and stream_id not in registry.streams():
            return json_response({**_NO_PROGRESS, **refused.to_status(time.time())})
        managed = registry.get(stream_id)
        current, status = managed.view.current_state(), managed.status()
        snapshot, figures = current.snapshot, shown_figures(managed.view, current)
        due = snapshot.next_close
        return json_response(
            {
                "state": status["state"],
                "condition": status["condition"],
                "refusal": None if refused is None else refused.to_document(),
                "waits_for": status["waits_for"],
                "reason": status["reason"],
                "as_of": figures.as_of_text,
                "micro_batch": figures.micro_batch,
                "messages": figures.messages,
                "dropped": figures.dropped,
                "open_windows": figures.open_windows,
                "held": figures.held,
                "next_close": None if due is None else format_rfc3339(due),
                "clock_waits_for": _describe_clock(snapshot, current.clock_blames),
                "rejected": status["rejected"],
                "restarts": status["restarts"],
                "active": status["active"],
                "uptime": status["uptime"],
                "source": status["source"],
                "revision": status["revision"],
                **summarise_stream(managed.view),
            }
        )

    def _plan(self, request: ApiRequest) -> web.Response:
        managed = self._get_stream(request)
        plan = make_plan(managed.config, name=managed.stream_id)
        parts = (plan.input, *plan.all_buffers, *plan.all_processors, *plan.outputs)
        document: dict[str, Any] = {
            "stream": plan.name,
            "master": plan.master,
            "window": "; ".join(window.describe() for window in plan.windows) or None,
            "key": None if plan.key is None else plan.key.text,
            "shards": plan.shards,
            "components": [
                {"kind": str(one.kind), "name": one.name, "label": one.label, "path": one.path}
                for one in parts
            ],
            "text": explain(plan, self._manager.registry.checkpoints.display_path(plan.name)),
        }
        return json_response(managed.redact_value(document))

    def _lint(self, request: ApiRequest) -> web.Response:
        return json_response({"lint_errors": self._manager.lint_stream(request.path["id"])})

    def _revisions(self, request: ApiRequest) -> web.Response:
        managed = self._get_stream(request)
        return json_response(
            [
                _revision_document(managed, revision)
                for revision in self._manager.revisions(managed.stream_id)
            ]
        )

    def _revision(self, request: ApiRequest) -> web.Response:
        managed, number = (
            self._get_stream(request),
            parse_number(request.path["number"], "revision"),
        )
        for revision in self._manager.revisions(managed.stream_id):
            if revision.number == number:
                config = self._manager.redact_revision_config(managed.stream_id, revision)
                return json_response({**_revision_document(managed, revision), "config": config})
        raise BadRequestError(f"there is no revision {number}")

    def _logs(self, request: ApiRequest) -> web.Response:
        managed = self._get_stream(request)
        return json_response(select_log_lines(managed.log_tail, request.query))

    def _ready(self, request: ApiRequest) -> web.Response:
        managed = self._get_stream(request)
        ready, body = check_readiness(managed.view)
        return json_response(managed.redact_value(body), 200 if ready else 503)


_LINT_SCHEMA: Final = s.object_schema(lint_errors=s.list_schema(s.STRING))
_REVISIONS_SCHEMA: Final = s.list_schema(s.REVISION)
_NO_PROGRESS: Final = {
    "micro_batch": -1,
    "dropped": {},
    "held": None,
    "next_close": None,
    "clock_waits_for": None,
}
"""Figures of a file that is refused and has no stream."""


def _revision_document(managed: ManagedStream, revision: Any) -> dict[str, Any]:
    return {
        "number": revision.number,
        "time": format_rfc3339(revision.time),
        "author": revision.author,
        "source": revision.source,
        "chilled": revision.chilled,
        "judgement": managed.redact_value(revision.judgement),
        "current": revision.number == managed.revision.number,
    }


def _describe_clock(snapshot: Snapshot, blames: Mapping[str, ClockBlame]) -> dict[str, Any] | None:
    """Return the partition or input that the windows' clock waits for; None where it does not."""
    if not snapshot.clock_source:
        return None
    ahead = round(snapshot.clock_ahead / SECOND, 3)
    document = {"source": snapshot.clock_source, "others_ahead_seconds": ahead}
    named = [one for one in blames.values() if one.name == snapshot.clock_source]
    return {**document, **describe_blame(named[0])} if named else document
