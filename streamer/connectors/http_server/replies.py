"""Replies to requests: errors in Go's form, and the messages of a `sync_response`."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import hdrs, web

from streamer.bloblang import Interpolation
from streamer.bloblang.golib.text import to_text
from streamer.connectors.http_client.framing import is_framing, is_hop_by_hop
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.metadata_filter import MetadataFilter
from streamer.sdk.sync_response import without_request

_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_SNIFFED_BYTES: Final = 512


def error_reply(status: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return an error as Go's servers write it."""
    reply = web.Response(status=status, text=f"{text}\n", headers=headers)
    reply.headers["X-Content-Type-Options"] = "nosniff"
    return reply


_RETRY_AFTER_S: Final = "1"


def retry_later_reply(what: str) -> web.Response:
    """Return what asks the client to come again, since something is starting."""
    headers = {"Retry-After": _RETRY_AFTER_S}
    return error_reply(503, f"Error: {what}: try again", headers)


@dataclass(frozen=True, slots=True)
class ReplyTemplate:
    """Writes the messages that answer a request.

    Attributes:
        status: gives the status.
        headers: give the headers, by name.
        metadata_filter: which metadata becomes headers.
    """

    status: Interpolation
    headers: Mapping[str, Interpolation]
    metadata_filter: MetadataFilter

    def to_response(self, answers: Sequence[Message], ex: Execution) -> web.Response:
        """Return the response; nothing in it and 200 when there are no answers."""
        if not answers:
            return web.Response()
        batch = [without_request(message) for message in answers]
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            if is_framing(name):
                continue
            try:
                headers[name] = value.text_of(batch, 0, ex)
            except MessageError as e:
                ex.log("ERROR", f"Interpolation of response header {name} error: {e}", {})
        try:
            status = int(self.status.text_of(batch, 0, ex))
        except (MessageError, ValueError) as e:
            ex.log("ERROR", f"Interpolation of response status code error: {e}", {})
            return web.Response(status=502)
        for message in batch:
            for key, value in self.metadata_filter.select(message.meta):
                # Those of the request are among them: its length is not the answer's.
                if not is_hop_by_hop(key):
                    headers[key] = to_text(value)
        if len(batch) > 1:
            return self._multipart_response(batch, headers, status, ex)
        raw = batch[0].raw
        response = web.Response(body=raw, status=status)
        response.headers.update(headers)
        if hdrs.CONTENT_TYPE not in headers and not _has_header(headers, hdrs.CONTENT_TYPE):
            response.headers[hdrs.CONTENT_TYPE] = sniff_content_type(raw)
        return response

    def _multipart_response(
        self, batch: Batch, headers: dict[str, str], status: int, ex: Execution
    ) -> web.Response:
        boundary = uuid.uuid4().hex * 2
        named = self.headers.get("content-type")
        body: list[bytes] = []
        for number, message in enumerate(batch):
            kind = sniff_content_type(message.raw)
            if named is not None:
                try:
                    kind = named.text_of(batch, number, ex)
                except MessageError as e:
                    ex.log("ERROR", f"Interpolation of content-type header error: {e}", {})
            line = f"--{boundary}\r\nContent-Type: {kind}\r\n\r\n".encode()
            body += [b"\r\n" if number else b"", line, message.raw]
        body.append(f"\r\n--{boundary}--\r\n".encode())
        response = web.Response(body=b"".join(body), status=status)
        response.headers.update(headers)
        response.headers[hdrs.CONTENT_TYPE] = f"multipart/form-data; boundary={boundary}"
        return response


def _has_header(headers: Mapping[str, str], name: str) -> bool:
    return any(key.lower() == name.lower() for key in headers)


def sniff_content_type(body: bytes) -> str:
    """Return what kind of content a body looks like: text, or anything else."""
    if _BINARY.search(body[:_SNIFFED_BYTES]):
        return "application/octet-stream"
    return "text/plain; charset=utf-8"
