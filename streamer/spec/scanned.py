"""The fields of every input that cuts a stream of bytes into messages."""

from __future__ import annotations

from typing import Final

from streamer.spec.field import Field

FIELD_SCANNER: Final = "scanner"

SCANNED_FIELDS: Final = (
    Field(
        "codec",
        "string",
        "The old way to say how the bytes are cut; use `scanner`.",
        optional=True,
        deprecated=True,
        options=("auto", "lines"),
    ),
    Field("max_buffer", "int", "Belongs to `codec`.", default=1_000_000, deprecated=True),
    Field(
        FIELD_SCANNER,
        "scanner",
        "How the stream of bytes is cut into messages.",
        default={"lines": {}},
        optional=True,
    ),
    Field(
        "auto_replay_nacks",
        "bool",
        "Taken for compatibility: a micro-batch that fails is replayed from its offsets.",
        default=True,
    ),
)
