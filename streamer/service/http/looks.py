"""The endpoints that show what streams do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

from streamer.plan.explain import explain
from streamer.service.exposition import by_name
from streamer.service.http import schemas as s
from streamer.service.http.answers import as_json
from streamer.service.http.cutting import CUT, PARAMETER, cut_line
from streamer.service.http.endpoint import Asked, Endpoint, Parameter
from streamer.service.http.reading import as_number
from streamer.service.ready import readiness
from streamer.service.streams.faults import BadRequestError
from streamer.service.streams.lines import KEPT
from streamer.service.streams.managed import Managed
from streamer.service.streams.manager import Manager
from streamer.service.streams.run import plan_of
from streamer.service.vitals import vitals
from streamer.timestamps import format_rfc3339
from streamer.window.words import phrase

_UNKNOWN: Final = {404: "There is no such stream."}


class LookEndpoints:
    """The endpoints below `/streams/{id}` that change nothing."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def all(self) -> Iterator[Endpoint]:
        """Return them."""
        path = "/streams/{id}"
        for name, about, look, schema in (
            ("stats", "Return the metrics of a stream.", self._stats, s.by_id(s.ANYTHING)),
            ("windows", "Return the open windows of a stream.", self._windows, s.WINDOWS),
            ("progress", "Return how far a stream is.", self._progress, s.PROGRESS),
            ("plan", "Return how a stream runs on Spark.", self._plan, s.by_id(s.ANYTHING)),
            ("lint", "Return the findings about a stream's config.", self._lint, _LINT),
            ("revisions", "Return the revisions, newest first.", self._revisions, _REVISIONS),
        ):
            yield Endpoint(
                *("GET", f"{path}/{name}", f"read_{name}", about, look, schema), codes=_UNKNOWN
            )
        yield Endpoint(
            *("GET", f"{path}/revisions/{{number}}", "read_revision"),
            "Return a revision with its config, without secrets.",
            *(self._revision, {**s.REVISION}),
            codes={**_UNKNOWN, 400: "There is no such revision."},
        )
        yield Endpoint(
            *("GET", f"{path}/logs", "read_logs", "Return the newest lines of a stream's log."),
            *(self._logs, s.listed(s.LINE)),
            parameters=(
                Parameter("after", "The number of a line: only those after it.", s.INTEGER),
                Parameter("lines", "How many, at most.", s.INTEGER),
                Parameter("number", "The number of a line: only this one.", s.INTEGER),
                PARAMETER,
            ),
            codes={**_UNKNOWN, 400: "A number is none."},
        )
        yield Endpoint(
            *("GET", "/{id}/ready", "read_ready"),
            "Return 200 when a stream's input and output are connected, else 503.",
            *(self._ready, s.READY),
            codes={**_UNKNOWN, 503: "They are not."},
        )

    def _get(self, asked: Asked) -> Managed:
        return self._manager.registry.get(asked.path["id"])

    def _stats(self, asked: Asked) -> web.Response:
        managed = self._get(asked)
        return as_json({**by_name(managed.view), "uptime_ns": managed.uptime()})

    def _windows(self, asked: Asked) -> web.Response:
        run = self._get(asked).run
        found = run.windows() if run is not None else _NO_WINDOWS
        # The clock of who asks may be another.
        return as_json({**found, "now": format_rfc3339(time.time_ns())})

    def _progress(self, asked: Asked) -> web.Response:
        managed = self._get(asked)
        snapshot, status = managed.view.now().snapshot, managed.status()
        due = snapshot.next_close
        return as_json(
            {
                "state": status["state"],
                "waits_for": status["waits_for"],
                "reason": status["reason"],
                "micro_batch": snapshot.batch,
                "messages": snapshot.messages,
                "dropped": dict(snapshot.dropped),
                "open_windows": snapshot.open_windows,
                "held": snapshot.held,
                "next_close": None if due is None else format_rfc3339(due),
                "rejected": status["rejected"],
                "restarts": status["restarts"],
                "active": status["active"],
                "uptime": status["uptime"],
                "source": status["source"],
                "revision": status["revision"],
                **vitals(managed.view),
            }
        )

    def _plan(self, asked: Asked) -> web.Response:
        managed = self._get(asked)
        plan = plan_of(managed.config, managed.stream_id, "INFO")
        parts = (plan.input, plan.buffer, *plan.processors, *plan.outputs)
        found: dict[str, Any] = {
            "stream": plan.name,
            "master": plan.master,
            "window": None if plan.window is None else phrase(plan.window),
            "key": None if plan.key is None else plan.key.text,
            "shards": plan.shards,
            "components": [
                {"kind": str(one.kind), "name": one.name, "label": one.label, "path": one.path}
                for one in parts
            ],
            "text": explain(plan, self._manager.registry.checkpoints.shown(plan.name)),
        }
        return as_json(managed.without_secrets(found))

    def _lint(self, asked: Asked) -> web.Response:
        return as_json({"lint_errors": self._manager.lint(asked.path["id"])})

    def _revisions(self, asked: Asked) -> web.Response:
        managed = self._get(asked)
        return as_json(
            [_shown(managed, revision) for revision in self._manager.revisions(managed.stream_id)]
        )

    def _revision(self, asked: Asked) -> web.Response:
        managed, number = self._get(asked), as_number(asked.path["number"], "revision")
        for revision in self._manager.revisions(managed.stream_id):
            if revision.number == number:
                config = self._manager.shown_revision(managed.stream_id, revision)
                return as_json({**_shown(managed, revision), "config": config})
        raise BadRequestError(f"there is no revision {number}")

    def _logs(self, asked: Asked) -> web.Response:
        managed = self._get(asked)
        after = as_number(asked.query.get("after", "0"), "after")
        most = as_number(asked.query.get("lines", str(KEPT)), "lines")
        if "number" in asked.query:
            number = as_number(asked.query["number"], "number")
            found = [one for one in managed.lines.after(number - 1) if one.number == number]
        else:
            found = managed.lines.after(after, most)
        lines = [line.as_dict() for line in found]
        if CUT in asked.query:
            longest = as_number(asked.query[CUT], CUT)
            lines = [cut_line(line, longest) for line in lines]
        return as_json(lines)

    def _ready(self, asked: Asked) -> web.Response:
        managed = self._get(asked)
        ready, body = readiness(managed.view)
        return as_json(managed.without_secrets(body), 200 if ready else 503)


_LINT: Final = s.obj(lint_errors=s.listed(s.STRING))
_REVISIONS: Final = s.listed(s.REVISION)
_NO_WINDOWS: Final = {"windows": [], "open": 0, "messages": 0, "bytes": 0}


def _shown(managed: Managed, revision: Any) -> dict[str, Any]:
    return {
        "number": revision.number,
        "time": format_rfc3339(revision.time),
        "author": revision.author,
        "source": revision.source,
        "chilled": revision.chilled,
        "judgement": managed.without_secrets(revision.judgement),
        "current": revision.number == managed.revision.number,
    }
