"""What requests bring: bodies of bounded size, and the parameters of queries."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from streamer.config.file import MAX_BYTES
from streamer.durations import SECOND, parse_duration
from streamer.service.probation import PROBATION
from streamer.service.streams.deploys import Wish
from streamer.service.streams.faults import BadRequestError

_BODY_TIMEOUT_S: Final = 30.0
_LONGEST: Final = 600.0
_LARGEST: Final = 2**53


class TooLargeError(Exception):
    """A body is larger than any config may be."""


async def body_of(request: web.BaseRequest, most: int = MAX_BYTES) -> str:
    """Return the body of a request as text.

    Raises:
        TooLargeError: it has more bytes.
        UnicodeDecodeError: it is not UTF-8.
        TimeoutError: it does not come within half a minute.
    """
    if (request.content_length or 0) > most:
        raise TooLargeError
    found = bytearray()
    async with asyncio.timeout(_BODY_TIMEOUT_S):
        async for chunk in request.content.iter_any():
            found += chunk
            if len(found) > most:
                raise TooLargeError
    return found.decode("utf-8-sig")


def wish_of(query: Mapping[str, str], author: str) -> Wish:
    """Return how something is to be changed; as in Benthos, a timeout that is none is left out."""
    timeout: float | None = None
    try:
        timeout = min(max(parse_duration(query.get("timeout", "")) / SECOND, 0.0), _LONGEST)
    except ValueError:
        timeout = None
    return Wish(
        author,
        chilled=query.get("chilled") == "true",
        timeout=timeout,
        on_reset=query.get("on_reset", ""),
        probation=PROBATION if query.get("rollback_on_failure") == "true" else None,
    )


def as_number(text: str, name: str) -> int:
    """Return the number that a parameter is.

    Raises:
        BadRequestError: it is none, or is larger than numbers of JSON may be.
    """
    if not text.isascii() or not text.isdecimal() or len(text) > 16 or int(text) > _LARGEST:
        raise BadRequestError(f"{name} is {text[:20]!r}; expected a number")
    return int(text)
