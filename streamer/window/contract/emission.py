"""Batches that a shard emits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from streamer.core.message import Batch

WindowReason = Literal["final", "changes", "each", "event", "forward", "count", "idle", "flush"]
"""Why a window's batch comes: the values of `window_emit`."""


@dataclass(slots=True)
class Emission:
    """A batch that goes on.

    Attributes:
        end: of its window, ns; None for messages that are not in one, or in one without bounds.
        messages: the batch.
        reason: why a window's batch comes; `failed` for a message that was marked upstream and
            passes by, a batch of its own; `dropped` for messages that only `late_output` gets.
        key: the group's key, when the window is emitted group by group.
        start: of its window, ns; None where the kind's messages are not told of it.
        is_per_message: each message is a batch by itself, in a window of its own, of which its
            metadata say all that there is to say.
    """

    end: int | None
    messages: Batch
    reason: WindowReason | Literal["failed", "dropped"]
    key: bytes | None = None
    start: int | None = None
    is_per_message: bool = False


@dataclass(slots=True)
class KeyedEmission(Emission):
    """Messages of which each is a batch by itself, each with a key and a time.

    Attributes:
        keys: by message, its key.
        times: by message, the clock after it, ns.
    """

    keys: Sequence[bytes] = ()
    times: Sequence[int] = ()

    @classmethod
    def of_messages(
        cls, messages: Batch, keys: Sequence[bytes], times: Sequence[int]
    ) -> KeyedEmission:
        """Return messages that go on at once."""
        return cls(None, messages, "forward", None, None, True, keys, times)
