"""What a request brings: its body as messages, and all that is known of it as metadata."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Mapping
from email.message import Message as Headers
from functools import lru_cache
from ssl import SSLObject
from typing import Any, Final

from aiohttp import hdrs, web

_MEDIA_TYPE: Final = re.compile(
    r"\s*[\w!#$%&'*+.^`|~-]+(/[\w!#$%&'*+.^`|~-]+)?\s*(;.*)?", re.DOTALL
)
_OLD_CIPHER: Final = re.compile(r"(?:(ECDHE)-(RSA|ECDSA)-)?(.*?)(?:-(SHA\d*))?$")
_CUT_AT_ONCE: Final = 1 << 18
"""Bytes of a multipart body that are cut in no time."""

_BULK: Final = re.compile(r"^(AES)(\d+)(?:-(GCM))?$")


class BadRequestError(Exception):
    """A request cannot be read; the text says why."""


class BusyError(Exception):
    """The bodies of other requests take the memory that there is for all of them."""


class BodyMemory:
    """The bytes of all bodies that are being taken. Threads may share it.

    Attributes:
        limit: bytes that there may be; a single body may have more.
    """

    def __init__(self, limit: int) -> None:
        """Begin with none."""
        self.limit = limit
        self._held = 0
        self._lock = threading.Lock()

    def take(self, size: int, own: int) -> None:
        """Take some bytes more for a body that has some already.

        Args:
            size: how many.
            own: how many it has.

        Raises:
            BusyError: there are too many of others.
        """
        with self._lock:
            if self._held > own and self._held + size > self.limit:
                raise BusyError
            self._held += size

    def release(self, size: int) -> None:
        """Give bytes back."""
        with self._lock:
            self._held -= size


BODIES: Final = BodyMemory(256 << 20)


class Body:
    """The body of one request, while it is taken."""

    def __init__(self, memory: BodyMemory = BODIES) -> None:
        """Begin without a byte."""
        self._memory = memory
        self.size = 0

    def __enter__(self) -> Body:
        """Begin to read it."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Give its bytes back: it has landed, or was refused."""
        self._memory.release(self.size)

    def add(self, size: int) -> None:
        """Count some more bytes.

        Raises:
            BusyError: the bodies of others take the memory that there is.
        """
        self._memory.take(size, self.size)
        self.size += size


class TooLargeError(Exception):
    """A request has more bytes or parts than it may; the text says how many there may be."""


def metadata(request: web.BaseRequest, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata of a request's messages; what comes later wins, as in Benthos.

    Args:
        request: the request.
        parameters: what those of the path stand for.
    """
    meta = {
        "http_server_user_agent": request.headers.get(hdrs.USER_AGENT, ""),
        "http_server_request_path": request.path,
        "http_server_verb": request.method,
    }
    if request.remote:
        meta["http_server_remote_ip"] = request.remote
    connection = request.get_extra_info("ssl_object")
    if connection is not None:
        meta |= _of_tls(connection)
    return meta | sent(request, parameters)


def sent(request: web.BaseRequest, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return what a sender has said: headers, queries, the path's parameters and cookies."""
    meta: dict[str, Any] = {}
    for name, value in request.headers.items():
        key = _canonical(name)
        # Go's server takes the host out of the headers.
        if key != "Host":
            meta.setdefault(key, value)
    asked: dict[str, str] = {}
    for name, value in request.query.items() if request.query_string else ():
        asked.setdefault(name, value)
    meta.update(asked)
    meta.update(parameters)
    if hdrs.COOKIE in request.headers:
        meta.update(request.cookies)
    return meta


@lru_cache(4096)
def _canonical(name: str) -> str:
    """Return the name of a header as Go spells it."""
    return "-".join(part.capitalize() for part in name.split("-"))


def _of_tls(connection: SSLObject) -> dict[str, str]:
    version = connection.version() or ""
    cipher = connection.cipher()
    return {
        "http_server_tls_version": "TLSv1.0" if version == "TLSv1" else version,
        "http_server_tls_cipher_suite": cipher_name(cipher[0]) if cipher else "",
    }


def cipher_name(name: str) -> str:
    """Return OpenSSL's name of a cipher suite as TLS's registry, and Go, spell it."""
    if name.startswith("TLS_"):
        return name
    found = _OLD_CIPHER.match(name)
    assert found is not None
    exchange = f"{found[1]}_{found[2]}" if found[1] else "RSA"
    bulk = _BULK.match(found[3])
    cipher = f"{bulk[1]}_{bulk[2]}_{bulk[3] or 'CBC'}" if bulk else found[3].replace("-", "_")
    return f"TLS_{exchange}_WITH_{cipher}_{found[4] or 'SHA256'}"


async def bodies(
    request: web.BaseRequest, body: Body, max_size: int, max_parts: int
) -> list[bytes]:
    """Return the payloads of a request: its body, or the parts of a multipart one.

    Args:
        request: the request.
        body: counts its bytes.
        max_size: bytes that its body may have.
        max_parts: parts that it may have.

    Raises:
        BadRequestError: its content type is none, or its parts are not whole.
        TooLargeError: it has more than it may.
        BusyError: the bodies of others take the memory that there is.
    """
    boundary = _boundary(request.headers.get(hdrs.CONTENT_TYPE, ""))
    raw = await _read(request, body, max_size)
    if boundary is None:
        return [raw]
    if len(raw) <= _CUT_AT_ONCE:
        return _parts(raw, boundary, max_parts)
    # Other requests, and probes, are answered meanwhile.
    return await asyncio.to_thread(_parts, raw, boundary, max_parts)


async def _read(request: web.BaseRequest, body: Body, max_size: int) -> bytes:
    """Return a body; no more of it is held than it may have."""
    size = request.content_length or 0
    blocks: list[bytes] = []
    if size <= max_size:
        size = 0
        async for block in request.content.iter_any():
            size += len(block)
            if size > max_size:
                break
            body.add(len(block))
            blocks.append(block)
        else:
            return b"".join(blocks)
    raise TooLargeError(f"its body has {size} bytes or more, and may have {max_size}")


@lru_cache(1024)
def _boundary(content_type: str) -> bytes | None:
    if not content_type:
        return None
    if _MEDIA_TYPE.fullmatch(content_type) is None:
        raise BadRequestError("mime: expected a media type")
    if not content_type.lstrip().lower().startswith("multipart/"):
        return None
    headers = Headers()
    headers[hdrs.CONTENT_TYPE] = content_type
    boundary = headers.get_boundary()
    if not boundary:
        raise BadRequestError("multipart: boundary is empty")
    return boundary.encode("latin-1", "replace")


def _parts(body: bytes, boundary: bytes, max_parts: int) -> list[bytes]:
    # Before the first part stands what is nobody's, behind the last one the end.
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary, max_parts + 2)
    if len(pieces) > max_parts + 2:
        raise TooLargeError(f"its body has more than the {max_parts} parts that it may have")
    found: list[bytes] = []
    for piece in pieces[1:]:
        if piece.startswith(b"--"):
            return found
        # What follows the boundary on its line is padding; then come headers, if there are any.
        _, _, part = piece.partition(b"\r\n")
        if part.startswith(b"\r\n"):
            found.append(part[2:])
            continue
        _, blank, content = part.partition(b"\r\n\r\n")
        if not blank:
            raise BadRequestError("multipart: the headers of a part do not end")
        found.append(content)
    raise BadRequestError("multipart: NextPart: EOF")
