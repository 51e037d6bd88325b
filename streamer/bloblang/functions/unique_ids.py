"""Functions that make unique ids which sort by the time they were made at: KSUID, UUID version 7.

Sources: the KSUID format (segmentio/ksuid), RFC 9562.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from typing import Final

from streamer.bloblang.declare import Example, Param, declare
from streamer.core.durations import MILLISECOND, SECOND
from streamer.core.execution import Execution
from streamer.core.timestamps import Timestamp

_CATEGORY: Final = "General"
_KSUID_EPOCH: Final = 1_400_000_000
_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KSUID_LENGTH: Final = 27


@declare(
    "ksuid",
    _CATEGORY,
    examples=(Example("root = ksuid().length()", "{}", "27"),),
    needs=("ex",),
    uses=("now", "random"),
)
def ksuid(ex: Execution) -> str:
    """A unique id that sorts by the second of its creation."""
    seconds = (ex.now() // SECOND - _KSUID_EPOCH) & 0xFFFFFFFF
    number = seconds << 128 | int.from_bytes(os.urandom(16), "big")
    digits = []
    for _ in range(_KSUID_LENGTH):
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return "".join(reversed(digits))


class _UuidSequence:
    """The part after the time in UUIDs: it counts up within a millisecond, so that they sort."""

    def __init__(self) -> None:
        self._last = (0, 0)
        self._value = 0

    def next(self, milliseconds: int) -> int:
        """Return 12 bits."""
        now = (milliseconds, os.getpid())
        # Half of the room is left to count up in.
        self._value = self._value + 1 if now == self._last else secrets.randbits(11)
        self._last = now
        return self._value & 0xFFF


_sequence: Final = _UuidSequence()


@declare(
    "uuid_v7",
    _CATEGORY,
    Param("time", "timestamp", default=None),
    examples=(
        Example("root = uuid_v7().length()", "{}", "36"),
        Example("root = uuid_v7(this.at).slice(0, 15)", '{"at":1577836800}', "016f5e66-e800-7"),
    ),
    needs=("ex",),
    uses=("now", "random"),
    binds=True,
)
def uuid_v7(time: Timestamp | None) -> Callable[[Execution], str]:
    """A unique id that sorts by the millisecond of its creation, or by a given time."""

    def make(ex: Execution) -> str:
        milliseconds = (ex.now() if time is None else time.ns) // MILLISECOND & (1 << 48) - 1
        number = milliseconds << 80 | 7 << 76 | _sequence.next(milliseconds) << 64
        text = f"{number | 2 << 62 | secrets.randbits(62):032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    return make
