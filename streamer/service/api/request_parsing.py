"""Parses requests: bodies of bounded size, and the parameters of queries."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from streamer.config.file import MAX_CONFIG_BYTES
from streamer.core.durations import SECOND, parse_duration
from streamer.service.fleet.deploys import ChangeOptions
from streamer.service.fleet.errors import BadRequestError
from streamer.service.run.probation import PROBATION_S

_BODY_TIMEOUT_S: Final = 30.0
_MAX_TIMEOUT_S: Final = 600.0
_MAX_NUMBER: Final = 2**53


class BodyTooLargeError(Exception):
    """A body is larger than any config may be."""


async def read_body(request: web.BaseRequest, max_bytes: int = MAX_CONFIG_BYTES) -> str:
    """Return the body of a request as text.

    Raises:
        TooLargeError: it has more bytes.
        UnicodeDecodeError: it is not UTF-8.
        TimeoutError: it does not come within half a minute.
    """
    if (request.content_length or 0) > max_bytes:
        raise BodyTooLargeError
    body = bytearray()
    async with asyncio.timeout(_BODY_TIMEOUT_S):
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > max_bytes:
                raise BodyTooLargeError
    return body.decode("utf-8-sig")


def parse_change_options(query: Mapping[str, str], author: str) -> ChangeOptions:
    """Return how something is to be changed; as in Benthos, a timeout that is none is left out."""
    timeout: float | None = None
    try:
        timeout = min(max(parse_duration(query.get("timeout", "")) / SECOND, 0.0), _MAX_TIMEOUT_S)
    except ValueError:
        timeout = None
    return ChangeOptions(
        author,
        chilled=query.get("chilled") == "true",
        timeout=timeout,
        on_reset=query.get("on_reset", ""),
        probation=PROBATION_S if query.get("rollback_on_failure") == "true" else None,
    )


def parse_number(text: str, name: str) -> int:
    """Return the number that a parameter is.

    Raises:
        BadRequestError: it is none, or is larger than numbers of JSON may be.
    """
    if not text.isascii() or not text.isdecimal() or len(text) > 16 or int(text) > _MAX_NUMBER:
        raise BadRequestError(f"{name} is {text[:20]!r}; expected a number")
    return int(text)
