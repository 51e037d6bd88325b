"""Answers of the API: JSON, and texts of errors, with Benthos's status codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson
from aiohttp import hdrs, web

from streamer.connectors.http_server.replies import error_reply
from streamer.core.errors import StreamerError
from streamer.service.fleet.errors import (
    BadConfigError,
    BadRequestError,
    RefusedError,
    StreamExistsError,
    UnknownStreamError,
)

STATUS_MEANINGS: Final[Mapping[int, str]] = {
    400: "The config has findings, or the request cannot be understood.",
    403: "The request is from a page of another site.",
    404: "There is no such stream.",
    409: "The stream, as it is, cannot do that; the text says what to do.",
    415: "A page of a browser sends the body of a form.",
    413: "The body is too large.",
    502: "It was tried and did not work; what ran before runs.",
}
"""When the API answers what, where an endpoint says nothing else."""


def json_response(value: Any, status: int = 200) -> web.Response:
    """Return a value as JSON."""
    headers = {hdrs.CONTENT_TYPE: "application/json"}
    body = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)
    return web.Response(body=body, status=status, headers=headers)


def text_response(text: str, status: int = 200) -> web.Response:
    """Return a text."""
    return web.Response(text=text, status=status)


def error_response(error: StreamerError) -> web.Response:
    """Return what is answered to what went wrong."""
    match error:
        case BadConfigError():
            return json_response({"lint_errors": list(error.findings)}, 400)
        case UnknownStreamError():
            return error_reply(404, "Stream not found")
        case StreamExistsError():
            return error_reply(400, "Stream already exists")
        case BadRequestError():
            return error_reply(400, f"Error: {error}")
        case RefusedError():
            judgement = error.judgement
            if judgement is None:
                return error_reply(409, f"Error: {error}")
            return json_response({"error": str(error), "judgement": judgement.as_dict()}, 409)
        case _:
            return error_reply(502, f"Error: {error}")
