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

from streamer.message import Batch, Message
from streamer.source.replayable import Chunk, Raws
from streamer.window.metadata import decode_meta, encode_meta

_FORMER_MAGIC: Final = b"\x89SB1"
_FORMER: Final = struct.Struct("<4sIII")
"""The header that version 0.1 has written: it says nothing of the block's place."""

_MAGIC: Final = b"\x89SB2"
_HEADER: Final = struct.Struct("<4sIIIQIQqI")
_SUM_SIZE: Final = 4
HEAD: Final = _HEADER.size
"""Bytes of a header, at most."""

_LARGEST: Final = (1 << 31) - 1
_EACH, _BATCH, _CUT = 0, 1, 2

Cut = Callable[[bytes, Mapping[str, Any]], Iterable[Chunk]]
"""Cuts bytes into messages, which have the metadata."""


class Place(NamedTuple):
    """Where a block belongs.

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
    """What stands before a body.

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
    """What one sender sent at once.

    Attributes:
        body: the packed record.
        messages: how many messages it has, about.
    """

    body: bytes
    messages: int


def each(raws: Sequence[bytes], meta: Mapping[str, Any], request: str = "") -> Record:
    """Make a record of messages, each a batch by itself.

    Args:
        raws: their payloads.
        meta: the metadata of each of them.
        request: the request that waits for their answer; several are joined by line breaks.
    """
    packed = msgpack.packb((_EACH, request, encode_meta(meta), raws))
    return Record(packed, len(raws))


def batch(messages: Batch, request: str = "") -> Record:
    """Make a record of one batch."""
    parts = [(encode_meta(one.meta, one.error), one.raw) for one in messages]
    return Record(msgpack.packb((_BATCH, request, parts)), len(messages))


def uncut(data: bytes, meta: Mapping[str, Any], messages: int, request: str = "") -> Record:
    """Make a record of bytes that hold about so many messages."""
    return Record(msgpack.packb((_CUT, request, encode_meta(meta), data)), messages)


def pack(records: Iterable[Record], mark: Any = None) -> Body:
    """Make the body of a block.

    Args:
        records: in the order in which they are read.
        mark: a JSON value, or None.
    """
    kept = list(records)
    data = b"".join((msgpack.packb(mark), *(record.body for record in kept)))
    return Body(data, min(sum(record.messages for record in kept), _LARGEST))


def block(body: Body, place: Place) -> bytes:
    """Make a block that belongs somewhere."""
    checksum = zlib.crc32(body.data)
    head = _HEADER.pack(_MAGIC, len(body.data), body.messages, checksum, *place, 0)
    head = head[:-_SUM_SIZE] + _sum_of(head).to_bytes(_SUM_SIZE, "little")
    return head + body.data


def header_of(head: bytes, at: int, end: int, store: int, segment: int) -> Header | None:
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
    if head[:4] == _MAGIC and len(head) >= HEAD:
        _, length, messages, checksum, *of, checked = _HEADER.unpack_from(head)
        place = Place(*of)
        there = place.segment == segment and place.position == at
        if not there or (store and place.store != store) or _sum_of(head) != checked:
            return None
        body = at + HEAD
    elif head[:4] == _FORMER_MAGIC and len(head) >= _FORMER.size:
        _, length, messages, checksum = _FORMER.unpack_from(head)
        body = at + _FORMER.size
    else:
        return None
    return Header(body, body + length, messages, checksum, place) if body + length <= end else None


def next_header(data: bytes, start: int, end: int, store: int, segment: int) -> int:
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
        found = [data.find(magic, at) for magic in (_MAGIC, _FORMER_MAGIC)]
        at = min((one for one in found if one >= 0), default=len(data))
        header = header_of(data[at : at + HEAD], start + at, end, store, segment)
        if header is not None:
            body = data[header.body - start : header.end - start]
            if header.place is not None or is_whole(body, header):
                return start + at
        at += 1
    return end


def is_whole(body: bytes | memoryview, header: Header) -> bool:
    """Tell whether a body is what was written."""
    return zlib.crc32(body) == header.checksum and len(body) == header.end - header.body


def _sum_of(head: bytes) -> int:
    return zlib.crc32(head[: HEAD - _SUM_SIZE])


def mark_of(body: memoryview) -> Any:
    """Return the mark of a block."""
    return next(_unpacked(body))


def chunks(body: memoryview, cut: Cut, asked: Callable[[str], None]) -> Iterator[Chunk]:
    """Return the messages of a block, record by record.

    Args:
        body: the block's.
        cut: cuts bytes into messages.
        asked: is told which requests wait for an answer.
    """
    unpacked = _unpacked(body)
    next(unpacked)
    held: list[Batch] = []
    for kind, request, *rest in unpacked:
        for one in request.splitlines():
            asked(one)
        if kind == _BATCH:
            held.append([_message(meta, raw) for meta, raw in rest[0]])
            continue
        meta = decode_meta(rest[0])[0]
        if kind == _EACH and len(rest[1]) == 1:
            # Requests come one by one, each with metadata of its own.
            held.append([Message(rest[1][0], meta)])
            continue
        if held:
            yield held
            held = []
        if kind == _EACH:
            yield Raws(rest[1], meta)
        else:
            yield from cut(rest[1], meta)
    if held:
        yield held


def _message(meta: bytes, raw: bytes) -> Message:
    found, error = decode_meta(meta)
    return Message(raw, found, error)


def _unpacked(body: memoryview) -> Iterator[Any]:
    unpacker = msgpack.Unpacker(
        max_buffer_size=max(len(body), 1), strict_map_key=False, use_list=True
    )
    unpacker.feed(body)
    return iter(unpacker)
