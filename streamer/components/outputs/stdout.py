"""`stdout`: "prints messages to stdout as a continuous stream of data"."""

from __future__ import annotations

from typing import Final

from streamer.connectors.formats.codec import CODEC, CODEC_FIELD, WriterCodec, read_codec
from streamer.core.execution import Execution
from streamer.core.json.bulk import payloads_of
from streamer.core.message import Batch
from streamer.sdk.spec import BuildContext, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.OUTPUT,
    "stdout",
    "Prints messages to the standard output of the program, wherever they were processed.",
    fields=(CODEC_FIELD,),
    categories=("Local",),
    runs="driver",
    delivery="at least once",
)


class StdoutOutput:
    """Encodes batches for the driver, which prints them.

    Attributes:
        append: always True: nothing on a terminal can be replaced.
    """

    append: Final = True

    def __init__(self, codec: WriterCodec) -> None:
        self._codec = codec

    @property
    def ignores_batches(self) -> bool:
        """Always True: what is written is the same however messages are cut into batches."""
        return True

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return the batch's bytes, under an empty route. Failed messages are written too."""
        return [("", self._codec.encode_all(payloads_of(batch)))] if batch else []

    def encode_each(self, batch: Batch, ex: Execution) -> tuple[str, list[bytes]]:
        """Return an empty route, and what is written for each message."""
        return "", list(map(self._codec.encode_one, payloads_of(batch)))

    def encode_texts(self, texts: list[bytes]) -> tuple[str, list[bytes]]:
        """Return the same for messages of these bytes."""
        return "", list(map(self._codec.encode_one, texts))


def build(parsed: ParsedFields, context: BuildContext) -> StdoutOutput:
    """Take the codec."""
    return StdoutOutput(read_codec(parsed[CODEC]))
