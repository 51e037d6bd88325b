"""How much one function or method may make at once, so that one message cannot take all memory.

Benthos has no such limits. What a mapping builds up step by step is not counted.
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang.errors import ArgumentError, QueryError

MOST_BYTES: Final = 256 << 20
MOST_ELEMENTS: Final = 10_000_000
MOST_GROUPS: Final = 1_000
"""Groups of one regular expression; RE2 takes memory for each at every step."""


def check_bytes(size: int, what: str) -> None:
    """Refuse to make a text or bytes that are too long.

    Raises:
        QueryError: there would be more than `MOST_BYTES`.
    """
    if size > MOST_BYTES:
        raise QueryError(f"{what} of {size} bytes, more than the {MOST_BYTES} that are allowed")


def check_unpacked(size: int) -> None:
    """Refuse to go on when too much came out of compressed data.

    Raises:
        QueryError: it is more than `MOST_BYTES`.
    """
    if size > MOST_BYTES:
        raise QueryError(f"the data decompress to more than the {MOST_BYTES} bytes allowed")


def check_elements(count: int, what: str) -> None:
    """Refuse to make an array that is too long.

    Raises:
        ArgumentError: there would be more than `MOST_ELEMENTS`.
    """
    if count > MOST_ELEMENTS:
        raise ArgumentError(
            f"{what} of {count} elements, more than the {MOST_ELEMENTS} that are allowed"
        )
