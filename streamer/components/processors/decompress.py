"""`decompress`: unpacks each message's payload.

It "decompresses messages according to the selected algorithm".
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang.methods.compression import DECOMPRESSION_ALGORITHMS, get_decompressor
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

ALGORITHM: Final = "algorithm"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "decompress",
    "Decompresses each message.",
    description=(
        "A message that cannot be decompressed stays as it is, and is marked as failed; so is one "
        "whose content would be larger than `limits.bytes` allows."
    ),
    fields=(Field(ALGORITHM, "string", "The algorithm.", options=DECOMPRESSION_ALGORITHMS),),
    categories=("Parsing",),
)


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Take the algorithm."""
    unpack = get_decompressor(parsed[ALGORITHM].lower())
    return PerMessageProcessor(
        lambda message, ex: message.with_bytes(unpack(message.raw)),
        ComponentRef(context.component),
        "Failed to decompress message part: ",
    )
