"""`split`: breaks a batch into smaller ones.

"The size of the resulting batches are determined either by a discrete size or, if the field
byte_size is non-zero, then by total size in bytes (which ever limit is reached first)." What
remains after the last full batch is a batch as well.
"""

from __future__ import annotations

from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

SIZE: Final = "size"
BYTE_SIZE: Final = "byte_size"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "split",
    "Breaks a batch into smaller batches, by a number of messages, by bytes, or both.",
    description=(
        "With a size of 10, a batch of 95 messages becomes nine of 10 and one of 5. To break up "
        "one message, use `unarchive`."
    ),
    fields=(
        Field(SIZE, "int", "The number of messages of a batch; 0 for no limit.", default=1),
        Field(
            BYTE_SIZE,
            "int",
            "The total number of bytes of a batch's messages; 0 for no limit. A message that is "
            "larger becomes a batch by itself, with a warning in the log.",
            default=0,
        ),
    ),
    categories=("Utility",),
)


class SplitProcessor:
    """Cuts batches where the next message would be one too many."""

    def __init__(self, size: int, byte_size: int, origin: ComponentRef) -> None:
        self._size = size
        self._byte_size = byte_size
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the parts of the batch, in order."""
        size = self._size
        if self._byte_size > 0:
            return self._split_by_bytes(batch, ex)
        if size <= 0 or size >= len(batch):
            return [batch]
        return [batch[start : start + size] for start in range(0, len(batch), size)]

    def _split_by_bytes(self, batch: Batch, ex: Execution) -> list[Batch]:
        result: list[Batch] = []
        part: Batch = []
        size = 0
        for message in batch:
            length = len(message.raw)
            full = 0 < self._size <= len(part)
            if full or size + length > self._byte_size:
                if part:
                    result.append(part)
                    part = []
                    size = 0
                else:
                    self._warn(length, ex)
            part.append(message)
            size += length
        if part:
            result.append(part)
        return result

    def _warn(self, length: int, ex: Execution) -> None:
        text = (
            "A single message exceeds the target batch byte size of "
            f"'{self._byte_size}', actual size: '{length}'"
        )
        self._origin.log(ex, "WARN", text)


def build(parsed: ParsedFields, context: BuildContext) -> SplitProcessor:
    """Take the two sizes."""
    return SplitProcessor(parsed[SIZE], parsed[BYTE_SIZE], ComponentRef(context.component))
