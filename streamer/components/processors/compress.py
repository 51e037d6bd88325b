"""`compress`: packs each message's payload.

It "compresses messages according to the selected algorithm"; "the `level` field might not apply to
all algorithms".
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang.methods.compression import COMPRESSION_ALGORITHMS, get_compressor
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.per_message import PerMessageProcessor
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

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
        Field(ALGORITHM, "string", "The algorithm.", options=COMPRESSION_ALGORITHMS),
        Field(
            LEVEL,
            "int",
            "Compression level, for algorithms with levels; -1 is their default.",
            default=-1,
        ),
    ),
    categories=("Parsing",),
)


def build(parsed: ParsedFields, context: BuildContext) -> PerMessageProcessor:
    """Take the algorithm and its level."""
    pack, level = get_compressor(parsed[ALGORITHM].lower()), parsed[LEVEL]
    return PerMessageProcessor(
        lambda message, ex: message.with_bytes(pack(message.raw, level)),
        ComponentRef(context.component),
        "Failed to compress message: ",
    )
