"""The endpoints for who writes configs: findings, the schema, and what a change would come to.

They change nothing. Configs that are tried here may do what configs that come by API may.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from aiohttp import hdrs, web

from streamer.config import Config
from streamer.config.rules import RULES
from streamer.errors import Lint, StreamerError
from streamer.plan.judgement import judge
from streamer.service.http import schemas as s
from streamer.service.http.answers import as_json
from streamer.service.http.endpoint import Asked, Endpoint, Parameter
from streamer.service.http.reading import as_number
from streamer.service.streams import typed
from streamer.service.streams.faults import BadConfigError, BadRequestError
from streamer.service.streams.managed import Managed
from streamer.service.streams.manager import Manager
from streamer.service.streams.store import Revision

_CONFIG: Final = "The config, YAML or JSON."
_UNKNOWN: Final = {404: "There is no such stream."}
_FINDING: Final = s.obj(
    file=s.STRING,
    line=s.INTEGER,
    column=s.INTEGER,
    code=s.STRING,
    message=s.STRING,
    suggestion=s.STRING,
    chilled=s.BOOLEAN,
)
_JUDGEMENT: Final = s.obj(
    effect=s.STRING,
    keeps_input=s.BOOLEAN,
    loses=s.listed(s.STRING),
    changes=s.listed(s.obj(path=s.STRING, effect=s.STRING, note=s.STRING)),
)
_TEXT: Final = s.obj(
    text=s.STRING, revision=s.INTEGER, source=s.STRING, author=s.STRING, of_api=s.BOOLEAN
)


class AuthoringEndpoints:
    """The endpoints that an editor of configs asks."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def all(self) -> Iterator[Endpoint]:
        """Return them."""
        yield Endpoint(
            *("GET", "/schema", "read_schema", "Return the JSON schema of configs."),
            *(self._schema, s.ANYTHING),
        )
        yield Endpoint(
            *("POST", "/lint", "lint_config", "Return the findings about a config."),
            *(self._lint, s.obj(lints=s.listed(_FINDING))),
            parameters=(
                Parameter("stream", "The stream that marks for secrets are of.", s.STRING),
            ),
            body=_CONFIG,
            codes=_UNKNOWN,
            changes=True,
        )
        path = "/streams/{id}"
        yield Endpoint(
            *("GET", f"{path}/config", "read_config"),
            "Return a stream's config as it was typed, comments and all, but for its secrets.",
            *(self._config, _TEXT),
            codes=_UNKNOWN,
        )
        yield Endpoint(
            *("POST", f"{path}/judgement", "judge_config"),
            "Return what a stream's change to another config would come to; nothing is changed.",
            *(self._judged, _JUDGEMENT),
            body=_CONFIG,
            codes=_UNKNOWN,
            changes=True,
        )
        yield Endpoint(
            *("GET", f"{path}/revisions/{{number}}/judgement", "judge_revision"),
            "Return what going back to a revision would come to; nothing is changed.",
            *(self._judged_revision, _JUDGEMENT),
            codes={**_UNKNOWN, 400: "There is no such revision, or it is not right any more."},
        )
        yield Endpoint(
            *("GET", f"{path}/revisions/{{number}}/config", "read_revision_config"),
            "Return a revision's config as it was typed, comments and all, but for its secrets.",
            *(self._config_of_revision, _TEXT),
            codes={**_UNKNOWN, 400: "There is no such revision, or it is not right any more."},
        )

    @cached_property
    def _schema_text(self) -> bytes:
        # Made when it is asked for: it takes a moment.
        from streamer.config.schema import schema_text

        return schema_text().encode()

    def _schema(self, asked: Asked) -> web.Response:
        headers = {hdrs.CONTENT_TYPE: "application/json"}
        response = web.Response(body=self._schema_text, headers=headers)
        response.enable_compression()
        return response

    def _lint(self, asked: Asked) -> web.Response:
        stream_id = asked.query.get("stream", "")
        managed = self._manager.registry.get(stream_id) if stream_id else None
        text = asked.body
        try:
            if managed is not None:
                text = typed.with_secrets(text, managed.revision.text)
            lints = self._findings(text, stream_id, chilled=False)
            if lints and all(map(_runs_chilled, lints)):
                # What else there is was not looked for.
                lints += self._findings(text, stream_id, chilled=True)
        except BadConfigError as e:
            lints = list(e.lints)
        found = [_finding(lint) for lint in dict.fromkeys(lints)]
        return as_json({"lints": found if managed is None else managed.without_secrets(found)})

    def _findings(self, text: str, stream_id: str, chilled: bool) -> list[Lint]:
        try:
            self._manager.registry.reader.of_api(text, stream_id, chilled)
        except BadConfigError as e:
            return list(e.lints) or [Lint("", 0, 0, "", one) for one in e.findings]
        return []

    def _config(self, asked: Asked) -> web.Response:
        managed = self._managed(asked)
        return as_json(_typed(managed, managed.revision, managed.config))

    def _judged(self, asked: Asked) -> web.Response:
        managed = self._managed(asked)
        text = typed.with_secrets(asked.body, managed.revision.text)
        config = self._manager.registry.reader.of_api(text, managed.stream_id, chilled=True)
        return _judgement(managed, config)

    def _judged_revision(self, asked: Asked) -> web.Response:
        managed, revision = self._revision(asked)
        config = self._manager.registry.read(managed.stream_id, revision)
        return _judgement(managed, config)

    def _config_of_revision(self, asked: Asked) -> web.Response:
        managed, revision = self._revision(asked)
        config = self._manager.registry.read(managed.stream_id, revision)
        return as_json(_typed(managed, revision, config))

    def _managed(self, asked: Asked) -> Managed:
        return self._manager.registry.get(asked.path["id"])

    def _revision(self, asked: Asked) -> tuple[Managed, Revision]:
        managed, number = self._managed(asked), as_number(asked.path["number"], "revision")
        for revision in self._manager.revisions(managed.stream_id):
            if revision.number == number:
                return managed, revision
        raise BadRequestError(f"there is no revision {number}")


def _judgement(managed: Managed, config: Config) -> web.Response:
    try:
        judgement = judge(managed.config, config)
    except StreamerError as e:
        raise BadConfigError([managed.redacted(str(e))]) from None
    return as_json(managed.without_secrets(judgement.as_dict()))


def _typed(managed: Managed, revision: Revision, config: Config) -> dict[str, Any]:
    return {
        "text": typed.without_secrets(revision.text, config),
        "revision": revision.number,
        "source": revision.source,
        "author": revision.author,
        "of_api": managed.of_api,
    }


def _finding(lint: Lint) -> dict[str, Any]:
    return {
        "file": lint.file,
        "line": lint.line,
        "column": lint.column,
        "code": lint.code,
        "message": lint.message,
        "suggestion": lint.suggestion,
        "chilled": _runs_chilled(lint),
    }


def _runs_chilled(lint: Lint) -> bool:
    rule = RULES.get(lint.code)
    return rule is not None and rule.runs_chilled
