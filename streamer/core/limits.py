"""Limits of one message, so that none takes all memory or all time.

One budget for all that unpacks, decodes, repeats and builds: the config's section `limits` sets it,
each component asks it before it sets memory aside (`streamer.bloblang.limits`), and a message
beyond it is marked as failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

MAX_BYTES: Final = 256 << 20
MAX_ELEMENTS: Final = 10_000_000
MAX_MESSAGES: Final = 1_000_000
MAX_DEPTH: Final = 200


class Limits(NamedTuple):
    """The budget of one message; the fields are those of the section `limits`.

    Attributes:
        bytes: what one message may be unpacked to, and how long one text or value may be.
        elements: how many elements one array may have, and values one file.
        messages: how many messages one message may become.
        depth: how deep the values of a message in a binary form may be nested.
        time: how long a mapping, an interpolation, or a processor that only computes may work on
            one message, ns; 0 for any time.
    """

    bytes: int = MAX_BYTES
    elements: int = MAX_ELEMENTS
    messages: int = MAX_MESSAGES
    depth: int = MAX_DEPTH
    time: int = 0


DEFAULT_LIMITS: Final = Limits()
_current = DEFAULT_LIMITS
_of_stream: Final[ContextVar[Limits | None]] = ContextVar("limits", default=None)


def set_limits(limits: Limits) -> None:
    """Let these be the limits of this process from now on; a worker does so for each task."""
    global _current
    _current = limits


@contextmanager
def stream_limits(limits: Limits) -> Iterator[None]:
    """Let these be the limits within, in this thread or task alone: a driver has many streams."""
    token = _of_stream.set(limits)
    try:
        yield
    finally:
        _of_stream.reset(token)


def current_limits() -> Limits:
    """Return the limits that hold here."""
    return _of_stream.get() or _current
