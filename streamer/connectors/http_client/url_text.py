"""The URL of a request, of which a message says a part: `..` in it leads out of what is written.

Clients and servers take a segment `..` away together with the one before it (RFC 3986, 5.2.4), so
that `http://host/tenants/${! this.tenant }/orders` would lead to anything on the host.
"""

from __future__ import annotations

import re
from typing import Final

from streamer.bloblang import Interpolation
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch

_BEFORE_PATH: Final = re.compile(r"^[^:/?#]*://[^/?#\\]*")
_DOT: Final = re.compile(r"%2e", re.IGNORECASE)
_END: Final = re.compile(r"[?#]")
_BETWEEN: Final = re.compile(r"[/\\]|%2f|%5c", re.IGNORECASE)


class UrlTemplate:
    """A URL as a config writes it.

    An expression that is the whole of it makes the URL by itself, as it is; one that is a part of
    it must not bring segments `.` or `..` with it.

    Attributes:
        static: the URL when there is nothing to evaluate, else None.
    """

    def __init__(self, text: Interpolation) -> None:
        """Take the interpolated string."""
        self.static = text.static
        self._text = text
        # What stands for an expression is in no segment that has dots only.
        self._fixed_dots = _count_dot_segments(
            "".join("x" if part is None else part for part in text.parts)
        )
        self._is_whole = len([part for part in text.parts if part is None or part.strip()]) == 1

    def text_of(self, batch: Batch, index: int, ex: Execution) -> str:
        """Return the URL for one message of a batch.

        Raises:
            MessageError: an expression failed, or leads out of the path.
        """
        url = self._text.text_of(batch, index, ex)
        if (
            not self._is_whole
            and "." in _DOT.sub(".", url)
            and _count_dot_segments(url) > self._fixed_dots
        ):
            raise MessageError(
                f"the path of {_redact_url(url)!r} has a segment '.' or '..' that the message has "
                "brought, and that leads elsewhere; leave such messages out by a mapping, or make "
                "the whole URL of one expression, which is taken as it is"
            )
        return url


def _count_dot_segments(url: str) -> int:
    """Return how many segments of a URL's path are dots only."""
    path = _END.split(_BEFORE_PATH.sub("", url, count=1), maxsplit=1)[0]
    return sum(_DOT.sub(".", segment) in (".", "..") for segment in _BETWEEN.split(path))


def _redact_url(url: str) -> str:
    from streamer.core.redaction import redact_urls

    return redact_urls(url)[:200]
