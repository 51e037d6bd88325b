"""`decompress`: unpacks each message's payload.

It "decompresses messages according to the selected algorithm".
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang.methods.compression import DECOMPRESSIONS, unpacker
from streamer.failure import Origin
from streamer.pipeline.per_message import PerMessage
from streamer.spec import BuildContext, Field, Kind, Parsed, Spec

ALGORITHM: Final = "algorithm"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "decompress",
    "Decompresses each message.",
    description=(
        "A message that cannot be decompressed stays as it is, and is marked as failed; so is one "
        "whose content would be larger than `limits.bytes` allows."
    ),
    fields=(Field(ALGORITHM, "string", "The algorithm.", options=DECOMPRESSIONS),),
    categories=("Parsing",),
)


def build(parsed: Parsed, context: BuildContext) -> PerMessage:
    """Take the algorithm."""
    unpack = unpacker(parsed[ALGORITHM].lower())
    return PerMessage(
        lambda message, ex: message.with_bytes(unpack(message.raw)),
        Origin(context.component),
        "Failed to decompress message part: ",
    )
