"""Rejected messages on their way from a task to the driver.

What becomes of one is decided where it is rejected, so that a micro-batch that comes again decides
the same: whether somebody waits for an answer to it, and whether its input gives it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgpack

from streamer.answering import REQUEST
from streamer.engine.undelivered import decode_message, encode_message
from streamer.message import Batch, Execution, Failure
from streamer.sending.rejection import RejectedBatch

_CHUNK_BYTES: Final = 1 << 20
_SAMPLE_BYTES: Final = 1_000

PIPELINE: Final = (-1,)
"""The way of what a `memory` buffer gives: through the processors of the pipeline alone."""

ROUTE: Final = "streamer_route"
"""Metadata of bytes that an output has made already: where the driver writes them."""

Way = tuple[int, ...]


class Fate(StrEnum):
    """What becomes of a rejected message."""

    ANSWERED = "answered"
    """Who sent it waits, and gets the reason as an error."""
    DROPPED = "dropped"
    """Its input has `auto_replay_nacks: false`."""
    KEPT = "kept"
    """It stays in the checkpoint, and is sent again."""


class Rejected(NamedTuple):
    """Messages that are rejected together, with what the driver has to know of them.

    Attributes:
        output: the config path of the output that has refused them.
        label: of that output.
        text: why.
        reason: a `Reason`.
        source: name, label and path of the processor that had failed on them, where that is why.
        fate: what becomes of them.
        way: the numbers of the inputs whose processors they go through again, `PIPELINE`, or None
            where they are sent again as the output got them.
        messages: how many the output has refused.
        batch: what is sent again; a sample where nothing is.
        number: of those that were sent again: which of them it is.
    """

    output: str
    label: str
    text: str
    reason: str
    source: Sequence[str]
    fate: str
    way: Way | None
    messages: int
    batch: Batch
    number: int = 0

    @property
    def labels(self) -> Mapping[str, str]:
        """Return label and path of the output, as metrics have them."""
        return {"label": self.label, "path": f"root.{self.output}"}


_BATCH: Final = Rejected._fields.index("batch")


class Origins(NamedTuple):
    """How the messages of a task are given again.

    Attributes:
        replays: whether their input gives a rejected message again.
        way: what they go through then; None where that is not known.
    """

    replays: bool = True
    way: Way | None = None


def rejected_of(
    ex: Execution, origins: Origins, by_number: Mapping[int, Origins] = MappingProxyType({})
) -> Iterator[Rejected]:
    """Return what has been taken out of a run; requests that wait for it hear of it.

    Args:
        ex: the run.
        origins: how its messages are given again.
        by_number: the same of those that have another way, by their numbers in `ex.origins`.
    """
    seen: dict[int, int] = {}
    found: list[Rejected] = []
    for one in ex.rejected:
        batch: Batch = one.batch
        way: Way | None = None
        given = origins if one.origin is None else by_number.get(one.origin, origins)
        if one.origin is not None and ex.origins is not None:
            if one.origin in seen:
                # It is given again once, whatever has become of it.
                at = seen[one.origin]
                found[at] = found[at]._replace(messages=found[at].messages + len(batch))
                continue
            seen[one.origin] = len(found)
            batch, way = ex.origins[one.origin], given.way
        fate = _fate(one, batch, ex, given)
        kept = batch if fate == Fate.KEPT else _sample(batch)
        error = one.batch[0].error
        source = [error.name, error.label, error.path] if isinstance(error, Failure) else []
        head = (one.output, one.label, str(one.text), str(one.text.reason), source)
        found.append(Rejected(*head, fate, way, len(one.batch), kept))
    yield from found


def _fate(one: RejectedBatch, batch: Batch, ex: Execution, origins: Origins) -> Fate:
    requests = {str(message.meta.get(REQUEST, "")) for message in (*batch, *one.batch)}
    waiting = sorted(requests & ex.answers.keys())
    for request in waiting:
        ex.refusals.setdefault(request, str(one.text))
    if waiting:
        return Fate.ANSWERED
    return Fate.KEPT if origins.replays else Fate.DROPPED


def _sample(batch: Batch) -> Batch:
    return [batch[0].told({}).with_bytes(batch[0].raw[:_SAMPLE_BYTES])] if batch else []


def packed_rejected(rejected: Iterable[Rejected]) -> Iterator[bytes]:
    """Return the bodies of frames of kind `REJECTED`."""
    held: list[bytes] = []
    size = 0
    for one in rejected:
        batch = [encode_message(message) for message in one.batch]
        whole = [*one[:_BATCH], batch, *one[_BATCH + 1 :]]
        held.append(msgpack.packb(whole))
        size += len(held[-1])
        if size >= _CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def unpacked_rejected(body: bytes) -> Iterator[Rejected]:
    """Read what `packed_rejected` has made."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(body)
    for fields in unpacker:
        yield _read(fields)


def _read(fields: list[Any]) -> Rejected:
    found = Rejected(*fields)
    batch = [decode_message(*message) for message in fields[_BATCH]]
    way = None if found.way is None else tuple(found.way)
    return found._replace(batch=batch, way=way)
