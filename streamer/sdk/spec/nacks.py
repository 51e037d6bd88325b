"""The field of inputs that says what becomes of a message which an output rejects."""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec.component import Field

AUTO_REPLAY_NACKS: Final = "auto_replay_nacks"

AUTO_REPLAY_NACKS_FIELD: Final = Field(
    AUTO_REPLAY_NACKS,
    "bool",
    "True if a message that an output rejects is kept and sent again; otherwise it is dropped, "
    "counted and logged.",
    default=True,
)
