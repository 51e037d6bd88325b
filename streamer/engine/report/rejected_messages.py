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

from streamer.core.execution import Execution
from streamer.core.message import Batch, Failure
from streamer.engine.report.undelivered import decode_message, encode_message
from streamer.sdk.output.rejection import RejectedBatch
from streamer.sdk.sync_response import REQUEST

_CHUNK_BYTES: Final = 1 << 20
_SAMPLE_BYTES: Final = 1_000
_PLACE_METADATA: Final = frozenset({"kafka_topic", "kafka_partition", "kafka_offset"})

PIPELINE_PATH: Final = (-1,)
"""The way of what a `memory` buffer gives: through the processors of the pipeline alone."""

UNSENT: Final = "unsent"
"""The reason of what was sent again to a receiver that does not answer."""

ROUTE_METADATA: Final = "streamer_route"
"""Metadata of bytes that an output has made already: where the driver writes them."""

InputPath = tuple[int, ...]


class Fate(StrEnum):
    """The treatment of a rejected message."""

    ANSWERED = "answered"
    """Who sent it waits, and gets the reason as an error."""
    DROPPED = "dropped"
    """Its input has `auto_replay_nacks: false`."""
    KEPT = "kept"
    """It stays in the checkpoint, and is sent again."""


class RejectedMessages(NamedTuple):
    """Messages that are rejected together, with what the driver has to know of them.

    Attributes:
        output: the config path of the output that has refused them.
        label: of that output.
        text: why.
        reason: a `Reason`.
        source: name, label and path of the processor that had failed on them, where that is why.
        fate: what becomes of them.
        input_path: the numbers of the inputs whose processors they go through again,
            `PIPELINE_PATH`, or None where they are sent again as the output got them.
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
    input_path: InputPath | None
    messages: int
    batch: Batch
    number: int = 0

    @property
    def labels(self) -> Mapping[str, str]:
        """Return label and path of the output, as metrics have them."""
        return {"label": self.label, "path": f"root.{self.output}"}


_BATCH_INDEX: Final = RejectedMessages._fields.index("batch")


class ReplayRules(NamedTuple):
    """Rules by which the messages of a task are redelivered.

    Attributes:
        replays: whether their input gives a rejected message again.
        input_path: what they go through then; None where that is not known.
    """

    replays: bool = True
    input_path: InputPath | None = None


def collect_rejected(
    ex: Execution, rules: ReplayRules, by_number: Mapping[int, ReplayRules] = MappingProxyType({})
) -> Iterator[RejectedMessages]:
    """Return the messages rejected in an execution; requests that wait for them are answered.

    Args:
        ex: the run.
        rules: how its messages are given again.
        by_number: the same of those that have another way, by their numbers in `ex.origins`.
    """
    seen: dict[int, int] = {}
    collected: list[RejectedMessages] = []
    for one in ex.rejected:
        batch: Batch = one.batch
        input_path: InputPath | None = None
        given = rules if one.origin is None else by_number.get(one.origin, rules)
        if one.origin is not None and ex.origins is not None:
            if one.origin in seen:
                # It is given again once, whatever has become of it.
                at = seen[one.origin]
                collected[at] = collected[at]._replace(messages=collected[at].messages + len(batch))
                continue
            seen[one.origin] = len(collected)
            batch, input_path = ex.origins[one.origin], given.input_path
        fate = _decide_fate(one, batch, ex, given)
        kept = batch if fate == Fate.KEPT else _sample_of(batch)
        error = one.batch[0].error
        source = [error.name, error.label, error.path] if isinstance(error, Failure) else []
        head = (one.output, one.label, str(one.text), str(one.text.reason), source)
        collected.append(RejectedMessages(*head, fate, input_path, len(one.batch), kept))
    yield from collected


def _decide_fate(one: RejectedBatch, batch: Batch, ex: Execution, rules: ReplayRules) -> Fate:
    requests = {str(message.meta.get(REQUEST, "")) for message in (*batch, *one.batch)}
    waiting = sorted(requests & ex.answers.keys())
    for request in waiting:
        ex.refusals.setdefault(request, str(one.text))
    if waiting:
        return Fate.ANSWERED
    return Fate.KEPT if rules.replays else Fate.DROPPED


def _sample_of(batch: Batch) -> Batch:
    if not batch:
        return []
    place = {name: value for name, value in batch[0].meta.items() if name in _PLACE_METADATA}
    return [batch[0].with_metadata(place).with_bytes(batch[0].raw[:_SAMPLE_BYTES])]


def encode_rejected(rejected: Iterable[RejectedMessages]) -> Iterator[bytes]:
    """Return the bodies of frames of kind `REJECTED`."""
    bodies: list[bytes] = []
    size = 0
    for one in rejected:
        batch = [encode_message(message) for message in one.batch]
        whole = [*one[:_BATCH_INDEX], batch, *one[_BATCH_INDEX + 1 :]]
        bodies.append(msgpack.packb(whole))
        size += len(bodies[-1])
        if size >= _CHUNK_BYTES:
            yield b"".join(bodies)
            bodies, size = [], 0
    if bodies:
        yield b"".join(bodies)


def decode_rejected(body: bytes) -> Iterator[RejectedMessages]:
    """Read what `encode_rejected` has made."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(body)
    for fields in unpacker:
        yield _decode_fields(fields)


def _decode_fields(fields: list[Any]) -> RejectedMessages:
    rejected = RejectedMessages(*fields)
    batch = [decode_message(*message) for message in fields[_BATCH_INDEX]]
    input_path = None if rejected.input_path is None else tuple(rejected.input_path)
    return rejected._replace(batch=batch, input_path=input_path)
