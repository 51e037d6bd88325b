"""What a shard gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamer.message import Batch


@dataclass(frozen=True, slots=True)
class Emission:
    """A batch that goes on.

    Attributes:
        end: of its window, ns; None for messages that are not in one.
        messages: the batch.
        reason: `final` or `flush` for a window; `failed` for a message that was marked upstream and
            passes by, a batch of its own; `dropped` for messages that only `late_output` gets.
        key: the group's key, when the window is emitted group by group.
    """

    end: int | None
    messages: Batch
    reason: Literal["final", "flush", "failed", "dropped"]
    key: bytes | None = None
