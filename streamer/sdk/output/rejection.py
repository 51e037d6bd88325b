"""Rejections: what an output refuses a message for, when the message is why.

A server that is away takes the same message later, so whoever sends waits for it. A message that
is refused for what it is would be waited for in vain, and all others with it: it is taken out,
and sent again by itself (`engine.driver.rejections`). Which of the two a failure is decides the
output that has it; what it does not decide counts as "away", since that loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from streamer.core.message import Batch, IndexedMessage


class Reason(StrEnum):
    """Reasons for which a message is rejected, as metrics and the API name them."""

    CONFIG = "config"
    """The config says so: `reject`, `reject_errored`, a strict `switch` or error handling."""
    INVALID = "invalid"
    """What the message gives cannot be used: a path, a URL, a header, a key, or an interpolation
    that fails."""
    REFUSED = "refused"
    """The receiver has refused it for what is in it."""
    TOO_LARGE = "too_large"
    """It is larger than the receiver takes."""


class Rejection(str):
    """The text of a failure for which the message itself is the cause.

    It stands wherever else the text of a failure does: in a `SendError`, by message or of a batch.

    Attributes:
        reason: what kind of cause it is.
        shared: whether several messages were refused with it, and nobody knows which one was meant.
    """

    __slots__ = ("reason", "shared")
    reason: Reason
    shared: bool

    def __new__(cls, text: str, reason: Reason, *, shared: bool = False) -> Rejection:
        """Make a text that knows its kind."""
        self = super().__new__(cls, text)
        self.reason, self.shared = reason, shared
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_make_rejection, (str(self), self.reason, self.shared))


def _make_rejection(text: str, reason: Reason, shared: bool) -> Rejection:
    return Rejection(text, reason, shared=shared)


def is_rejection(text: str) -> bool:
    """Return whether a failure's text says that the message itself is the cause."""
    return isinstance(text, Rejection)


def as_shared(text: str) -> str:
    """Return the text of a failure as one of several messages."""
    return Rejection(text, text.reason, shared=True) if isinstance(text, Rejection) else text


def with_reason_of(text: str, cause: str) -> str:
    """Return another text for a failure, which is a rejection when its cause is one."""
    if not isinstance(cause, Rejection):
        return text
    return Rejection(text, cause.reason, shared=cause.shared)


def make_invalid_rejection(text: str) -> Rejection:
    """Return why a message has no usable path, address, key or header."""
    return Rejection(text, Reason.INVALID)


@dataclass(frozen=True, slots=True)
class RejectedBatch:
    """Messages that have been taken out of a run.

    Attributes:
        output: the config path of the output that has refused them, and gets them again.
        label: of that output.
        batch: the messages as that output got them.
        text: why.
        origin: the number of what the input gave, where that is what is sent again: see
            `Execution.origins`; None where it is `batch`.
    """

    output: str
    label: str
    batch: Batch
    text: Rejection
    origin: int | None = None


def origin_number_of(message: Any, origins: Mapping[int, Batch] | None) -> int | None:
    """Return the number of what the input gave that a message was made of, where it is known."""
    if (
        origins is None
        or not isinstance(message, IndexedMessage)
        or message.place[0] not in origins
    ):
        return None
    return message.place[0]
