"""`compress`: packs each message's payload.

It "compresses messages according to the selected algorithm"; "the `level` field might not apply to
all algorithms".
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang.methods.compression import COMPRESSIONS, packer
from streamer.failure import Origin
from streamer.pipeline.per_message import PerMessage
from streamer.spec import BuildContext, Field, Kind, Parsed, Spec

ALGORITHM: Final = "algorithm"
LEVEL: Final = "level"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "compress",
    "Compresses each message.",
    description=(
        "`snappy` writes a block, without a frame around it. A message that cannot be compressed "
        "stays as it is, and is marked as failed."
    ),
    fields=(
        Field(ALGORITHM, "string", "The algorithm.", options=COMPRESSIONS),
        Field(
            LEVEL,
            "int",
            "How hard to try, for the algorithms that have levels; -1 is their own default.",
            default=-1,
        ),
    ),
    categories=("Parsing",),
)


def build(parsed: Parsed, context: BuildContext) -> PerMessage:
    """Take the algorithm and its level."""
    pack, level = packer(parsed[ALGORITHM].lower()), parsed[LEVEL]
    return PerMessage(
        lambda message, ex: message.with_bytes(pack(message.raw, level)),
        Origin(context.component),
        "Failed to compress message: ",
    )
