"""Messages from a request: its body, and its properties as metadata."""

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
_MAX_INLINE_BYTES: Final = 1 << 18
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
        self._used = 0
        self._lock = threading.Lock()

    def acquire(self, size: int, own: int) -> None:
        """Take some bytes more for a body that has some already.

        Args:
            size: how many.
            own: how many it has.

        Raises:
            BusyError: there are too many of others.
        """
        with self._lock:
            if self._used > own and self._used + size > self.limit:
                raise BusyError
            self._used += size

    def release(self, size: int) -> None:
        """Give bytes back."""
        with self._lock:
            self._used -= size


BODY_MEMORY: Final = BodyMemory(256 << 20)


class RequestBody:
    """The body of one request, while it is taken."""

    def __init__(self, memory: BodyMemory = BODY_MEMORY) -> None:
        """Begin without a byte."""
        self._memory = memory
        self.size = 0

    def __enter__(self) -> RequestBody:
        """Begin to read it."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Release the memory of the body: it is in the spool, or was refused."""
        self._memory.release(self.size)

    def add(self, size: int) -> None:
        """Count some more bytes.

        Raises:
            BusyError: the bodies of others take the memory that there is.
        """
        self._memory.acquire(size, self.size)
        self.size += size


class TooLargeError(Exception):
    """A request has more bytes or parts than it may; the text says how many there may be."""


def request_metadata(request: web.BaseRequest, parameters: Mapping[str, str]) -> dict[str, Any]:
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
        meta |= _tls_metadata(connection)
    return meta | sender_metadata(request, parameters)


def sender_metadata(request: web.BaseRequest, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return a request's metadata: headers, queries, the path's parameters and cookies."""
    meta: dict[str, Any] = {}
    for name, value in request.headers.items():
        key = _canonical_header(name)
        # Go's server takes the host out of the headers.
        if key != "Host":
            meta.setdefault(key, value)
    parameters_by_name: dict[str, str] = {}
    for name, value in request.query.items() if request.query_string else ():
        parameters_by_name.setdefault(name, value)
    meta.update(parameters_by_name)
    meta.update(parameters)
    if hdrs.COOKIE in request.headers:
        meta.update(request.cookies)
    return meta


@lru_cache(4096)
def _canonical_header(name: str) -> str:
    """Return the name of a header as Go spells it."""
    return "-".join(part.capitalize() for part in name.split("-"))


def _tls_metadata(connection: SSLObject) -> dict[str, str]:
    version = connection.version() or ""
    cipher = connection.cipher()
    return {
        "http_server_tls_version": "TLSv1.0" if version == "TLSv1" else version,
        "http_server_tls_cipher_suite": go_cipher_name(cipher[0]) if cipher else "",
    }


def go_cipher_name(name: str) -> str:
    """Return OpenSSL's name of a cipher suite as TLS's registry, and Go, spell it."""
    if name.startswith("TLS_"):
        return name
    match = _OLD_CIPHER.match(name)
    assert match is not None
    exchange = f"{match[1]}_{match[2]}" if match[1] else "RSA"
    bulk = _BULK.match(match[3])
    cipher = f"{bulk[1]}_{bulk[2]}_{bulk[3] or 'CBC'}" if bulk else match[3].replace("-", "_")
    return f"TLS_{exchange}_WITH_{cipher}_{match[4] or 'SHA256'}"


async def read_payloads(
    request: web.BaseRequest, body: RequestBody, max_size: int, max_parts: int
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
    boundary = _parse_boundary(request.headers.get(hdrs.CONTENT_TYPE, ""))
    raw = await _read_body(request, body, max_size)
    if boundary is None:
        return [raw]
    if len(raw) <= _MAX_INLINE_BYTES:
        return _split_parts(raw, boundary, max_parts)
    # Other requests, and probes, are answered meanwhile.
    return await asyncio.to_thread(_split_parts, raw, boundary, max_parts)


async def _read_body(request: web.BaseRequest, body: RequestBody, max_size: int) -> bytes:
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
def _parse_boundary(content_type: str) -> bytes | None:
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


def _split_parts(body: bytes, boundary: bytes, max_parts: int) -> list[bytes]:
    # Before the first part stands what is nobody's, behind the last one the end.
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary, max_parts + 2)
    if len(pieces) > max_parts + 2:
        raise TooLargeError(f"its body has more than the {max_parts} parts that it may have")
    payloads: list[bytes] = []
    for piece in pieces[1:]:
        if piece.startswith(b"--"):
            return payloads
        # What follows the boundary on its line is padding; then come headers, if there are any.
        _, _, part = piece.partition(b"\r\n")
        if part.startswith(b"\r\n"):
            payloads.append(part[2:])
            continue
        _, blank, content = part.partition(b"\r\n\r\n")
        if not blank:
            raise BadRequestError("multipart: the headers of a part do not end")
        payloads.append(content)
    raise BadRequestError("multipart: NextPart: EOF")
