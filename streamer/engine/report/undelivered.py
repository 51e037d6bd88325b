"""Batches that a task could not deliver in time, on their way to the driver, which retries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgpack
import orjson

from streamer.core.message import Batch, IndexedMessage, Message
from streamer.engine.report.metric_labels import Labels
from streamer.window.pack.metadata_codec import decode_meta, encode_meta

CHUNK_MESSAGES: Final = 1_000
"""Messages from which on a batch begins new `UndeliveredBatches`: the driver tries one first."""

_DOCUMENT: Final = "document"


class UndeliveredBatches(NamedTuple):
    """Batches that an output has not taken, in order, as they are to be sent.

    Attributes:
        output: number of the output at the end of the stream, in `Plan.outputs`.
        order: where they stand among the batches of the micro-batch; see `Frame.order`.
        batches: the batches. The processors beside the output at `path` have run on them where it
            is the one at the end of the stream, and have not where it is one inside of it.
        text: why they could not be sent.
        place: label and path of the component that could not.
        path: the config path of the component that they go to; empty for the output itself.
        start: of that component's outputs, the first that they go to, where it sends in sequence.
        part: the part of the micro-batch that they are of, where an output sends each part in one
            transaction; else empty.
        task: names the task; empty where nothing is known of origins.
        origins: what the input gave, by the places of the batches' messages, where the config
            rejects messages: see `Execution.origins`.
        input_path: what those go through when they are given again; see
            `engine.rejected.RejectedMessages`.
        replays: whether their input gives them again.
    """

    output: int
    order: int
    batches: list[Batch]
    text: str
    place: Labels
    path: str = ""
    start: int = 0
    part: str = ""
    task: str = ""
    origins: Mapping[int, Batch] = MappingProxyType({})
    input_path: tuple[int, ...] | None = None
    replays: bool = True


def encode_undelivered(undelivered: UndeliveredBatches) -> bytes:
    """Return the body of a frame of kind `UNDELIVERED`; origins of other batches are left out."""
    batches = [[encode_message(one) for one in batch] for batch in undelivered.batches]
    origins = [
        (number, [encode_message(one) for one in undelivered.origins[number]])
        for number in sorted(_origins_in(undelivered))
    ]
    changed = {"batches": batches, "place": dict(undelivered.place), "origins": origins}
    fields = {**undelivered._asdict(), **changed}
    body: bytes = msgpack.packb(list(fields.values()))
    return body


def decode_undelivered(body: bytes) -> UndeliveredBatches:
    """Read what `encode_undelivered` has made."""
    undelivered = UndeliveredBatches(*msgpack.unpackb(body))
    batches = [_decode_batch(batch) for batch in undelivered.batches]
    pairs: Any = undelivered.origins
    origins = {number: _decode_batch(batch) for number, batch in pairs}
    input_path = None if undelivered.input_path is None else tuple(undelivered.input_path)
    return undelivered._replace(batches=batches, origins=origins, input_path=input_path)


def _origins_in(undelivered: UndeliveredBatches) -> set[int]:
    """Return the numbers of the origins that messages of the batches are made of."""
    if not undelivered.origins:
        return set()
    messages = (one for batch in undelivered.batches for one in batch)
    places = {one.place[0] for one in messages if isinstance(one, IndexedMessage)}
    return places & undelivered.origins.keys()


def _decode_batch(packed: Any) -> Batch:
    return [decode_message(*_message_fields(one)) for one in packed]


def _message_fields(packed: Any) -> tuple[bytes, bytes, Sequence[int] | None, bool]:
    meta, raw, place, typed = packed
    return meta, raw, place, typed


def encode_message(message: Message) -> tuple[bytes, bytes, tuple[int, ...] | None, bool]:
    """Return metadata, payload, place, and whether the payload is a value that JSON lacks."""
    place = message.place if isinstance(message, IndexedMessage) else None
    meta = encode_meta(message.meta, message.error)
    if message.has_doc():
        try:
            orjson.dumps(message.doc)
        except TypeError:
            # Times and bytes: an output may ask for them as such, as the arguments of SQL do.
            return meta, encode_meta({_DOCUMENT: message.doc}), place, True
    return meta, message.raw, place, False


def decode_message(meta: bytes, raw: bytes, place: Sequence[int] | None, typed: bool) -> Message:
    """Read what `encode_message` has made."""
    metadata, error = decode_meta(meta)
    message = Message(raw, metadata, error)
    if typed:
        document, _ = decode_meta(raw)
        message = Message(None, metadata, error, document[_DOCUMENT])
    return message if place is None else IndexedMessage.with_place(message, tuple(place))
