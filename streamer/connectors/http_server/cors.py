"""Requests from the pages of other origins: which are allowed, as Benthos's `cors` says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import hdrs, web

_METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE"


async def with_cors(
    request: web.BaseRequest,
    origins: frozenset[str],
    answer: Callable[[], Awaitable[web.StreamResponse]],
) -> web.StreamResponse:
    """Answer a request, and say whether pages of its origin may see the answer.

    Args:
        request: the request.
        origins: those that are allowed; `*` allows all.
        answer: answers what is no question for permission.
    """
    origin = request.headers.get(hdrs.ORIGIN)
    allowed = origin is not None and bool(origins & {"*", origin})
    is_preflight = hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
    if request.method == hdrs.METH_OPTIONS and origin is not None and is_preflight:
        response: web.StreamResponse = web.Response()
        if allowed:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_METHODS] = _METHODS
    else:
        response = await answer()
    if allowed and origin is not None and not response.prepared:
        response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = "*" if "*" in origins else origin
        response.headers[hdrs.VARY] = hdrs.ORIGIN
    return response
