"""From a batch to a request, as Benthos makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.bloblang.golib.text import to_text
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.fields import HEADERS, METADATA, URL, VERB
from streamer.connectors.http_client.framing import is_framing, is_hop_by_hop
from streamer.connectors.http_client.multipart import Part, write_multipart
from streamer.connectors.http_client.url_text import UrlTemplate
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.metadata_filter import MetadataFilter
from streamer.sdk.spec import ParsedFields

CONTENT_TYPE: Final = "Content-Type"
OCTETS: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request that is not sent yet.

    Attributes:
        method: its verb.
        url: where it goes.
        headers: its headers, in order.
        body: its body; None for none.
    """

    method: str
    url: str
    headers: Sequence[tuple[str, str]]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class PartTemplate:
    """One part of a body that the config describes: what it says of each, for the first message."""

    content_disposition: Interpolation
    content_type: Interpolation
    body: Interpolation


class RequestMaker:
    """Makes requests of batches."""

    def __init__(
        self,
        parsed: ParsedFields,
        body: Interpolation | None = None,
        parts: Sequence[PartTemplate] = (),
    ) -> None:
        """Take the fields of a client.

        Args:
            parsed: the fields.
            body: the body of every request, in the place of the messages.
            parts: the parts of every body, in the place of the messages.
        """
        headers: Mapping[str, str] = parsed[HEADERS]
        self._url = UrlTemplate(compile_interpolation(parsed[URL]))
        self._verb: str = parsed[VERB]
        self._headers = {name: compile_interpolation(text) for name, text in headers.items()}
        self._metadata = MetadataFilter(parsed[METADATA])
        self._body = body
        self._parts = parts

    @property
    def has_own_urls(self) -> bool:
        """Whether the URL depends on the message."""
        return self._url.static is None

    @property
    def depends_on_message(self) -> bool:
        """Whether the URL or a header depends on the message."""
        own_headers = any(text.static is None for text in self._headers.values())
        return self.has_own_urls or own_headers or self._metadata.is_set

    def make(self, batch: Batch, ex: Execution) -> HttpRequest:
        """Make a request.

        Args:
            batch: what is sent; several messages make a body of several parts. Texts of the config
                are those of the first. It may be empty where they need no message.
            ex: the run.

        Raises:
            HttpError: an expression in the config fails.
        """
        # Texts that need no message, such as one with the time in it, do without one.
        reference = batch or [Message(b"")]
        body, kind = self._make_body(batch, reference, ex)
        url = _interpolate_text("url", self._url, reference, 0, ex)
        headers = [
            (name, _interpolate_text(f"header '{name}'", text, reference, 0, ex))
            for name, text in self._headers.items()
            if not is_framing(name)
        ]
        if batch:
            # As Go's client, it frames the body itself, whatever came with another request.
            headers += [
                (key, to_text(value))
                for key, value in self._metadata.select(batch[0].meta)
                if not is_hop_by_hop(key)
            ]
        if kind:
            headers = [pair for pair in headers if pair[0].lower() != CONTENT_TYPE.lower()]
            headers.append((CONTENT_TYPE, kind))
        return HttpRequest(self._verb, url, headers, body)

    def _make_body(self, batch: Batch, reference: Batch, ex: Execution) -> tuple[bytes | None, str]:
        """Return a body, and its type where it does not come from the config."""
        own = "" if CONTENT_TYPE in self._headers else OCTETS
        if self._body is not None:
            return _interpolate_bytes("body", self._body, reference, ex), own
        if self._parts:
            return write_multipart(
                [_make_templated_part(part, reference, ex) for part in self._parts]
            )
        if not batch:
            return None, ""
        if len(batch) == 1:
            return batch[0].raw, own
        return write_multipart([self._make_part(batch, index, ex) for index in range(len(batch))])

    def _make_part(self, batch: Batch, index: int, ex: Execution) -> Part:
        kind = OCTETS
        if CONTENT_TYPE in self._headers:
            kind = _interpolate_text("content-type", self._headers[CONTENT_TYPE], batch, index, ex)
        taken = [(key, to_text(value)) for key, value in self._metadata.select(batch[index].meta)]
        return [(CONTENT_TYPE, kind), *taken], batch[index].raw


def _make_templated_part(part: PartTemplate, batch: Batch, ex: Execution) -> Part:
    disposition = _interpolate_text("content-disposition", part.content_disposition, batch, 0, ex)
    kind = _interpolate_text("content-type", part.content_type, batch, 0, ex)
    headers = [("Content-Disposition", disposition), (CONTENT_TYPE, kind)]
    return headers, _interpolate_bytes("part body", part.body, batch, ex)


def _interpolate_text(
    what: str, text: Interpolation | UrlTemplate, batch: Batch, index: int, ex: Execution
) -> str:
    if text.static is not None:
        return text.static
    try:
        return text.text_of(batch, index, ex)
    except MessageError as error:
        raise HttpError(f"{what} interpolation error: {error}", is_invalid_request=True) from None


def _interpolate_bytes(what: str, text: Interpolation, batch: Batch, ex: Execution) -> bytes:
    try:
        return text.bytes_of(batch, 0, ex)
    except MessageError as error:
        raise HttpError(f"{what} interpolation error: {error}", is_invalid_request=True) from None
