"""Records of messages, and blocks of records: what one sync of the disk makes safe.

A block is a header and its body: a mark, which the writer wants to find again after a crash, and
records. The header has a check sum of the body and one of itself, and it says where the block
belongs (the store, the segment, the position in it, the messages before it), so that a block which
is missing, or stands where another one was, is found. A record is one of

- messages that share their metadata, each a batch by itself;
- one batch, whose messages have metadata of their own;
- bytes that a scanner cuts into messages when they are read.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgpack

from streamer.core.message import Batch, Message
from streamer.sdk.input.replayable import Chunk, RawMessages
from streamer.window.pack.metadata_codec import decode_meta, encode_meta

_MAGIC_V1: Final = b"\x89SB1"
_HEADER_V1: Final = struct.Struct("<4sIII")
"""The header that version 0.1 has written: it says nothing of the block's place."""

_MAGIC: Final = b"\x89SB2"
_HEADER: Final = struct.Struct("<4sIIIQIQqI")
_SUM_BYTES: Final = 4
HEADER_BYTES: Final = _HEADER.size
"""Bytes of a header, at most."""

_MAX_MESSAGES: Final = (1 << 31) - 1
_EACH, _BATCH, _CUT = 0, 1, 2

ScanFunction = Callable[[bytes, Mapping[str, Any]], Iterable[Chunk]]
"""Cuts bytes into messages, which have the metadata."""


class Place(NamedTuple):
    """The place of a block.

    Attributes:
        store: what no other store has.
        segment: number of the segment.
        position: bytes of the segment before it.
        before: messages of the store before it.
    """

    store: int
    segment: int
    position: int
    before: int


class Header(NamedTuple):
    """The header of a body.

    Attributes:
        body: where the body begins, in bytes of the segment.
        end: where it ends.
        messages: how many messages it has.
        checksum: of the body.
        place: where the block belongs; None when it is of version 0.1, which did not say.
    """

    body: int
    end: int
    messages: int
    checksum: int
    place: Place | None


class Body(NamedTuple):
    """The packed records of a block, and how many messages they have."""

    data: bytes
    messages: int


class Record(NamedTuple):
    """The messages that one sender sent at once.

    Attributes:
        body: the packed record.
        messages: how many messages it has, about.
    """

    body: bytes
    messages: int


def pack_each(raws: Sequence[bytes], meta: Mapping[str, Any], request: str = "") -> Record:
    """Make a record of messages, each a batch by itself.

    Args:
        raws: their payloads.
        meta: the metadata of each of them.
        request: the request that waits for their answer; several are joined by line breaks.
    """
    packed = msgpack.packb((_EACH, request, encode_meta(meta), raws))
    return Record(packed, len(raws))


def pack_batch(messages: Batch, request: str = "") -> Record:
    """Make a record of one batch."""
    parts = [(encode_meta(one.meta, one.error), one.raw) for one in messages]
    return Record(msgpack.packb((_BATCH, request, parts)), len(messages))


def pack_uncut(data: bytes, meta: Mapping[str, Any], messages: int, request: str = "") -> Record:
    """Make a record of bytes that hold about so many messages."""
    return Record(msgpack.packb((_CUT, request, encode_meta(meta), data)), messages)


def pack_records(records: Iterable[Record], mark: Any = None) -> Body:
    """Make the body of a block.

    Args:
        records: in the order in which they are read.
        mark: a JSON value, or None.
    """
    kept = list(records)
    data = b"".join((msgpack.packb(mark), *(record.body for record in kept)))
    return Body(data, min(sum(record.messages for record in kept), _MAX_MESSAGES))


def make_block(body: Body, place: Place) -> bytes:
    """Make a block that belongs somewhere."""
    checksum = zlib.crc32(body.data)
    head = _HEADER.pack(_MAGIC, len(body.data), body.messages, checksum, *place, 0)
    head = head[:-_SUM_BYTES] + _header_checksum(head).to_bytes(_SUM_BYTES, "little")
    return head + body.data


def read_header(head: bytes, at: int, end: int, store: int, segment: int) -> Header | None:
    """Return the header of the block at a position of a segment.

    Args:
        head: the first `HEAD` bytes there, or as many as there are.
        at: the position.
        end: where the segment ends.
        store: the store's identity; 0 when it is not known.
        segment: number of the segment.

    Returns:
        None when no header stands there, or that of a block which belongs somewhere else, or more
        than there is.
    """
    place = None
    if head[:4] == _MAGIC and len(head) >= HEADER_BYTES:
        _, length, messages, checksum, *of, checked = _HEADER.unpack_from(head)
        place = Place(*of)
        there = place.segment == segment and place.position == at
        if not there or (store and place.store != store) or _header_checksum(head) != checked:
            return None
        body = at + HEADER_BYTES
    elif head[:4] == _MAGIC_V1 and len(head) >= _HEADER_V1.size:
        _, length, messages, checksum = _HEADER_V1.unpack_from(head)
        body = at + _HEADER_V1.size
    else:
        return None
    return Header(body, body + length, messages, checksum, place) if body + length <= end else None


def find_next_header(data: bytes, start: int, end: int, store: int, segment: int) -> int:
    """Return where the next block that belongs there begins, behind damage; `end` for nowhere.

    Blocks of version 0.1 do not say where they belong, so that any bytes may look like one: of
    these, one counts whose body is what was written.

    Args:
        data: the bytes from `start` to `end`.
        start: a position in the segment.
        end: where the segment ends.
        store: the store's identity; 0 when it is not known.
        segment: number of the segment.
    """
    at = 0
    while at < len(data):
        positions = [data.find(magic, at) for magic in (_MAGIC, _MAGIC_V1)]
        at = min((one for one in positions if one >= 0), default=len(data))
        header = read_header(data[at : at + HEADER_BYTES], start + at, end, store, segment)
        if header is not None:
            body = data[header.body - start : header.end - start]
            if header.place is not None or is_whole(body, header):
                return start + at
        at += 1
    return end


def is_whole(body: bytes | memoryview, header: Header) -> bool:
    """Return whether a body is what was written."""
    return zlib.crc32(body) == header.checksum and len(body) == header.end - header.body


def _header_checksum(head: bytes) -> int:
    return zlib.crc32(head[: HEADER_BYTES - _SUM_BYTES])


def read_mark(body: memoryview) -> Any:
    """Return the mark of a block."""
    return next(_unpack(body))


def read_chunks(
    body: memoryview, scan: ScanFunction, on_request: Callable[[str], None]
) -> Iterator[Chunk]:
    """Return the messages of a block, record by record.

    Args:
        body: the block's.
        scan: cuts bytes into messages.
        on_request: is told which requests wait for an answer.
    """
    unpacked = _unpack(body)
    next(unpacked)
    batches: list[Batch] = []
    for kind, request, *rest in unpacked:
        for one in request.splitlines():
            on_request(one)
        if kind == _BATCH:
            batches.append([_make_message(meta, raw) for meta, raw in rest[0]])
            continue
        meta = decode_meta(rest[0])[0]
        if kind == _EACH and len(rest[1]) == 1:
            # Requests come one by one, each with metadata of its own.
            batches.append([Message(rest[1][0], meta)])
            continue
        if batches:
            yield batches
            batches = []
        if kind == _EACH:
            yield RawMessages(rest[1], meta)
        else:
            yield from scan(rest[1], meta)
    if batches:
        yield batches


def _make_message(meta: bytes, raw: bytes) -> Message:
    metadata, error = decode_meta(meta)
    return Message(raw, metadata, error)


def _unpack(body: memoryview) -> Iterator[Any]:
    unpacker = msgpack.Unpacker(
        max_buffer_size=max(len(body), 1), strict_map_key=False, use_list=True
    )
    unpacker.feed(body)
    return iter(unpacker)
