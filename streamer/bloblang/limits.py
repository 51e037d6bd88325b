"""Checks against the budget of one message (`streamer.core.limits`), before memory is set aside.

Benthos has no such limits. What a mapping builds up step by step is not counted.
"""

from __future__ import annotations

from typing import Final, Protocol

from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.core.limits import current_limits

_CHUNK_BYTES: Final = 1 << 16
MAX_REGEX_GROUPS: Final = 1_000
"""Groups of one regular expression; RE2 takes memory for each at every step."""


def check_bytes(size: int, what: str) -> None:
    """Refuse to make a text or bytes that are too long.

    Raises:
        QueryError: there would be more than `limits.bytes`.
    """
    most = current_limits().bytes
    if size > most:
        raise QueryError(f"{what} of {size} bytes, more than the {most} that limits.bytes allows")


def check_decompressed_size(size: int) -> None:
    """Refuse to go on when too much came out of compressed data.

    Raises:
        QueryError: it is more than `limits.bytes`.
    """
    most = current_limits().bytes
    if size > most:
        raise QueryError(
            f"the data decompress to more than the {most} bytes that limits.bytes allows"
        )


def check_messages(count: int) -> None:
    """Refuse to make too many messages of one.

    Raises:
        QueryError: there would be more than `limits.messages`.
    """
    most = current_limits().messages
    if count > most:
        raise QueryError(
            f"the message holds more than the {most} messages that limits.messages allows"
        )


class Decompressor(Protocol):
    """A decompressor of one stream."""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""

    def decompress(self, data: bytes, /) -> bytes:
        """Take some more, return what comes out."""


def decompress_stream(
    stream: Decompressor, data: bytes, begin: int, size: int
) -> tuple[bytes, int]:
    """Return what comes out of a stream, and where its data end or the stream has ended.

    Args:
        stream: what decompresses it.
        data: the stream, and what may come before and after it.
        begin: where it begins.
        size: how much came out of streams before it.

    Raises:
        QueryError: more than `limits.bytes` would come out; what `stream` raises goes on.
    """
    chunks, at = [], begin
    while not stream.eof and at < len(data):
        chunk = data[at : at + _CHUNK_BYTES]
        chunks.append(stream.decompress(chunk))
        at += len(chunk)
        size += len(chunks[-1])
        check_decompressed_size(size)
    return b"".join(chunks), at


def check_elements(count: int, what: str) -> None:
    """Refuse to make an array that is too long.

    Raises:
        ArgumentError: there would be more than `limits.elements`.
    """
    most = current_limits().elements
    if count > most:
        raise ArgumentError(
            f"{what} of {count} elements, more than the {most} that limits.elements allows"
        )


def check_depth(depth: int, what: str) -> None:
    """Refuse to go deeper into a nested value.

    Raises:
        QueryError: it is deeper than `limits.depth`.
    """
    most = current_limits().depth
    if depth > most:
        raise QueryError(f"{what} is nested deeper than the {most} levels that limits.depth allows")
