"""Headers that belong to one connection or to one body, and so to who writes them."""

from __future__ import annotations

from typing import Final

_BODY_HEADERS: Final = frozenset({"content-length", "trailer", "transfer-encoding"})
_CONNECTION_HEADERS: Final = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "upgrade"}
)


def is_framing(name: str) -> bool:
    """Return whether a header says how a body ends, which no config can know (RFC 9112, 6)."""
    return name.lower() in _BODY_HEADERS


def is_hop_by_hop(name: str) -> bool:
    """Return whether a header of one request or response is none of another (RFC 9110, 7.6.1)."""
    return name.lower() in _CONNECTION_HEADERS or is_framing(name)
