"""The endpoints for authors of configs: findings, the schema, and the effect of a change.

They change nothing. Configs that are tried here may do what configs that come by API may.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from aiohttp import hdrs, web

from streamer.config import Config
from streamer.config.lint.rules import RULES
from streamer.core.errors import Lint, StreamerError
from streamer.plan.change_impact import judge
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint, Parameter
from streamer.service.api.open_state import OPEN_STATE_SCHEMA, describe_open_state
from streamer.service.api.request_parsing import parse_number
from streamer.service.api.responses import json_response
from streamer.service.fleet import redacted_text
from streamer.service.fleet.deployment_store import Revision
from streamer.service.fleet.errors import BadConfigError, BadRequestError
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.manager import Manager

_CONFIG_ABOUT: Final = "The config, YAML or JSON."
_UNKNOWN_STREAM_CODES: Final = {404: "There is no such stream."}
_FINDING_SCHEMA: Final = s.object_schema(
    file=s.STRING,
    line=s.INTEGER,
    column=s.INTEGER,
    code=s.STRING,
    message=s.STRING,
    suggestion=s.STRING,
    chilled=s.BOOLEAN,
)
_JUDGEMENT_SCHEMA: Final = s.object_schema(
    effect=s.STRING,
    keeps_input=s.BOOLEAN,
    loses=s.list_schema(s.STRING),
    changes=s.list_schema(s.object_schema(path=s.STRING, effect=s.STRING, note=s.STRING)),
    held=OPEN_STATE_SCHEMA,
)
_TEXT_SCHEMA: Final = s.object_schema(
    text=s.STRING, revision=s.INTEGER, source=s.STRING, author=s.STRING, of_api=s.BOOLEAN
)


class AuthoringEndpoints:
    """The endpoints that an editor of configs asks."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._manager = manager

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        yield Endpoint(
            *("GET", "/schema", "read_schema", "Return the JSON schema of configs."),
            *(self._schema, s.ANYTHING),
        )
        yield Endpoint(
            *("POST", "/lint", "lint_config", "Return the findings about a config."),
            *(self._lint, s.object_schema(lints=s.list_schema(_FINDING_SCHEMA))),
            parameters=(
                Parameter("stream", "The stream whose secrets the marks stand for.", s.STRING),
            ),
            body=_CONFIG_ABOUT,
            codes=_UNKNOWN_STREAM_CODES,
            is_change=True,
        )
        path = "/streams/{id}"
        yield Endpoint(
            *("GET", f"{path}/config", "read_config"),
            "Return a stream's config as it was written, with comments, without secrets.",
            *(self._config, _TEXT_SCHEMA),
            codes=_UNKNOWN_STREAM_CODES,
        )
        yield Endpoint(
            *("POST", f"{path}/judgement", "judge_config"),
            "Return the effect of a change to another config on a stream; nothing is changed.",
            *(self._judge_config, _JUDGEMENT_SCHEMA),
            body=_CONFIG_ABOUT,
            codes=_UNKNOWN_STREAM_CODES,
            is_change=True,
        )
        yield Endpoint(
            *("GET", f"{path}/revisions/{{number}}/judgement", "judge_revision"),
            "Return the effect of going back to a revision; nothing is changed.",
            *(self._judge_revision, _JUDGEMENT_SCHEMA),
            codes={
                **_UNKNOWN_STREAM_CODES,
                400: "There is no such revision, or its config has findings today.",
            },
        )
        yield Endpoint(
            *("GET", f"{path}/revisions/{{number}}/config", "read_revision_config"),
            "Return a revision's config as it was written, with comments, without secrets.",
            *(self._config_of_revision, _TEXT_SCHEMA),
            codes={
                **_UNKNOWN_STREAM_CODES,
                400: "There is no such revision, or its config has findings today.",
            },
        )

    @cached_property
    def _schema_text(self) -> bytes:
        # Made when it is asked for: it takes a moment.
        from streamer.config.schema import schema_text

        return schema_text().encode()

    def _schema(self, request: ApiRequest) -> web.Response:
        headers = {hdrs.CONTENT_TYPE: "application/json"}
        response = web.Response(body=self._schema_text, headers=headers)
        response.enable_compression()
        return response

    def _lint(self, request: ApiRequest) -> web.Response:
        stream_id = request.query.get("stream", "")
        managed = self._manager.registry.get(stream_id) if stream_id else None
        text = request.body
        try:
            if managed is not None:
                text = redacted_text.restore_secrets(text, managed.revision.text)
            lints = self._findings(text, stream_id, chilled=False)
            if lints and all(map(_can_run_chilled, lints)):
                # What else there is was not looked for.
                lints += self._findings(text, stream_id, chilled=True)
        except BadConfigError as e:
            lints = list(e.lints)
        documents = [_finding_document(lint) for lint in dict.fromkeys(lints)]
        return json_response(
            {"lints": documents if managed is None else managed.redact_value(documents)}
        )

    def _findings(self, text: str, stream_id: str, chilled: bool) -> list[Lint]:
        try:
            self._manager.registry.reader.read_api_config(text, stream_id, chilled)
        except BadConfigError as e:
            return list(e.lints) or [Lint("", 0, 0, "", one) for one in e.findings]
        return []

    def _config(self, request: ApiRequest) -> web.Response:
        managed = self._get_stream(request)
        return json_response(_config_document(managed, managed.revision, managed.config))

    def _judge_config(self, request: ApiRequest) -> web.Response:
        managed = self._get_stream(request)
        text = redacted_text.restore_secrets(request.body, managed.revision.text)
        config = self._manager.registry.reader.read_api_config(
            text, managed.stream_id, chilled=True
        )
        return _judgement_response(managed, config)

    def _judge_revision(self, request: ApiRequest) -> web.Response:
        managed, revision = self._revision(request)
        config = self._manager.registry.read_config(managed.stream_id, revision)
        return _judgement_response(managed, config)

    def _config_of_revision(self, request: ApiRequest) -> web.Response:
        managed, revision = self._revision(request)
        config = self._manager.registry.read_config(managed.stream_id, revision)
        return json_response(_config_document(managed, revision, config))

    def _get_stream(self, request: ApiRequest) -> ManagedStream:
        return self._manager.registry.get(request.path["id"])

    def _revision(self, request: ApiRequest) -> tuple[ManagedStream, Revision]:
        managed, number = (
            self._get_stream(request),
            parse_number(request.path["number"], "revision"),
        )
        for revision in self._manager.revisions(managed.stream_id):
            if revision.number == number:
                return managed, revision
        raise BadRequestError(f"there is no revision {number}")


def _judgement_response(managed: ManagedStream, config: Config) -> web.Response:
    try:
        judgement = judge(managed.config, config)
    except StreamerError as e:
        raise BadConfigError([managed.redact_text(str(e))]) from None
    state = describe_open_state(managed)
    return json_response({**managed.redact_value(judgement.as_dict()), "held": state})


def _config_document(managed: ManagedStream, revision: Revision, config: Config) -> dict[str, Any]:
    return {
        "text": redacted_text.redact_text(revision.text, config),
        "revision": revision.number,
        "source": revision.source,
        "author": revision.author,
        "of_api": managed.is_of_api,
    }


def _finding_document(lint: Lint) -> dict[str, Any]:
    return {
        "file": lint.file,
        "line": lint.line,
        "column": lint.column,
        "code": lint.code,
        "message": lint.message,
        "suggestion": lint.suggestion,
        "chilled": _can_run_chilled(lint),
    }


def _can_run_chilled(lint: Lint) -> bool:
    rule = RULES.get(lint.code)
    return rule is not None and rule.runs_chilled
