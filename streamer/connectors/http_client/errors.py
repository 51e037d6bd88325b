"""Errors of HTTP requests."""

from __future__ import annotations

from collections.abc import Sequence

from streamer.core.errors import StreamerError


class HttpError(StreamerError):
    """A request got no answer, or one that says that it has failed.

    Attributes:
        status: the answer's code; None when there was no answer.
        headers: the answer's headers, by name in lower case, in order.
        body: the answer's body.
        is_invalid_request: whether no request can be made of the message: an interpolation fails,
            or gives a URL or a header that cannot be.
    """

    def __init__(
        self,
        text: str,
        status: int | None = None,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        *,
        is_invalid_request: bool = False,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers
        self.body = body
        self.is_invalid_request = is_invalid_request


class HttpTimeoutError(HttpError):
    """A request has taken too long."""
