"""Batching of inputs: the messages of a piece are put into batches as stage 1 reads them.

In Benthos such an input collects the messages of each partition in memory. Here a piece is the part
of a partition that a micro-batch has. So batches are cut within a partition and a micro-batch, and
are the same whenever the micro-batch is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.input.replayable import Chunk, RawMessages
from streamer.sdk.processing.batching import (
    BATCHING,
    POLICY_FIELDS,
    BatchPolicy,
    is_batching_used,
    policy_problems,
)
from streamer.sdk.spec import Field, ParsedFields

INPUT_BATCHING: Final = Field(
    BATCHING,
    "object",
    "Puts the messages of each partition into batches for the processors and outputs. The end of a "
    "micro-batch closes a batch as well.",
    children=POLICY_FIELDS,
    advanced=True,
)
"""The field of inputs whose messages are put into batches as they are read."""

_CHUNK_MESSAGES: Final = 256
"""Messages of small batches that are passed on together."""


def input_batching(batching: ParsedFields) -> ParsedFields | None:
    """Return a policy where it does something; for `Spec.batching`."""
    return batching if is_batching_used(batching) else None


def input_batching_problems(batching: ParsedFields, place: str) -> Iterator[tuple[str, str]]:
    """Return what is wrong with the policy of an input, as pairs of field and text.

    Args:
        batching: the fields.
        place: the name of the field, dotted.
    """
    if is_batching_used(batching):
        for name, text in policy_problems(batching):
            yield f"{place}.{name}" if name else place, text


def batch_chunks(chunks: Iterable[Chunk], policy: BatchPolicy, ex: Execution) -> Iterator[Chunk]:
    """Put the messages of one piece into batches.

    Args:
        chunks: what the input gives; its batches are never divided.
        policy: closes a batch, as does the end of the piece.
        ex: the run.
    """
    ready: list[Batch] = []
    count = 0
    for batch in policy.batches(split_chunks(chunks), ex):
        ready.append(batch)
        count += len(batch)
        if count >= _CHUNK_MESSAGES:
            yield ready
            ready, count = [], 0
    if ready:
        yield ready


def split_chunks(chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Give the batches of chunks one by one; plain payloads are batches of one."""
    for chunk in chunks:
        if isinstance(chunk, RawMessages):
            yield from ([Message(raw, chunk.meta)] for raw in chunk.raws)
        else:
            yield from chunk
