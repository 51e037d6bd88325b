"""Records of messages, and blocks of records: what one sync of the disk makes safe.

A block is a header (magic, length, number of messages, check sum) and its body: a mark, which is
what the writer wants to find again after a crash, and records. A record is one of

- messages that share their metadata, each a batch by itself;
- one batch, whose messages have metadata of their own;
- bytes that a scanner cuts into messages when they are read.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgpack

from streamer.message import Batch, Message
from streamer.source.replayable import Chunk, Raws
from streamer.window.metadata import decode_meta, encode_meta

_MAGIC: Final = b"\x89SB1"
_HEADER: Final = struct.Struct("<4sIII")
_LARGEST: Final = (1 << 31) - 1
_EACH, _BATCH, _CUT = 0, 1, 2

Cut = Callable[[bytes, Mapping[str, Any]], Iterable[Chunk]]
"""Cuts bytes into messages, which have the metadata."""


class Block(NamedTuple):
    """Where a block stands in its segment, and how many messages it has."""

    start: int
    end: int
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


def pack(records: Iterable[Record], mark: Any = None) -> bytes:
    """Make a block of records.

    Args:
        records: in the order in which they are read.
        mark: a JSON value, or None.
    """
    kept = list(records)
    body = b"".join((msgpack.packb(mark), *(record.body for record in kept)))
    count = sum(record.messages for record in kept)
    return _HEADER.pack(_MAGIC, len(body), min(count, _LARGEST), zlib.crc32(body)) + body


def blocks(file: int, start: int, end: int) -> Iterator[Block]:
    """Return the blocks between two positions of an open segment, by their headers alone."""
    while start + _HEADER.size <= end:
        mark, length, messages, _ = _HEADER.unpack(os.pread(file, _HEADER.size, start))
        after = start + _HEADER.size + length
        if mark != _MAGIC or after > end:
            return
        yield Block(start, after, messages)
        start = after


def bodies(data: bytes) -> Iterator[memoryview]:
    """Return the bodies of blocks that stand one after another, up to one that is not whole."""
    view, at = memoryview(data), 0
    while at + _HEADER.size <= len(view):
        mark, length, _, checked = _HEADER.unpack_from(view, at)
        body = view[at + _HEADER.size : at + _HEADER.size + length]
        if mark != _MAGIC or len(body) < length or zlib.crc32(body) != checked:
            return
        yield body
        at += _HEADER.size + length


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
