"""Parse and write the payloads of many messages at once, which is faster than one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson

from streamer.core.errors import MessageError
from streamer.core.json.dump import dump_json_each
from streamer.core.json.number_spelling import has_odd_number, has_plain_numbers
from streamer.core.json.parse import parse_json, parse_json_long
from streamer.core.lazy_batch import LazyBatch
from streamer.core.message import UNPARSED, Batch

_PARSE_CHUNK_MESSAGES: Final = 500


def documents_of(batch: Batch, keep: bool) -> list[Any]:
    """Return the parsed payload of each message, in order: what `Message.doc` returns.

    Looking for numbers that need the exact parser costs more than parsing when it is done for each
    small payload by itself; so it is done for some hundred together.

    Args:
        batch: the messages.
        keep: whether messages remember their documents.

    Raises:
        ValueError, MessageError: a payload is not JSON; which one, `Message.doc` says.
    """
    if isinstance(batch, LazyBatch) and batch.content is not None:
        return batch.content.documents()
    if len(batch) <= _PARSE_CHUNK_MESSAGES:
        return _parse_chunk(batch, keep)
    docs: list[Any] = []
    for start in range(0, len(batch), _PARSE_CHUNK_MESSAGES):
        docs += _parse_chunk(batch[start : start + _PARSE_CHUNK_MESSAGES], keep)
    return docs


def parse_batch(batch: Batch) -> None:
    """Parse the payloads of messages whose documents are about to be used, as far as they can be.

    A payload that is not JSON is left for `Message.doc` to complain about, and so are those behind
    it in a piece of the batch.
    """
    if isinstance(batch, LazyBatch) and batch.content is not None:
        with suppress(ValueError, MessageError):
            batch.parse()
            return
    for start in range(0, len(batch), _PARSE_CHUNK_MESSAGES):
        # The slots are used as they are: this is the inside of a loop over all messages.
        pending = [m for m in batch[start : start + _PARSE_CHUNK_MESSAGES] if m._doc is UNPARSED]
        parse = choose_parser([message._raw or b"" for message in pending])
        with suppress(ValueError, MessageError):
            for message in pending:
                message._doc = parse(message._raw or b"")


def choose_parser(raws: Sequence[bytes]) -> Callable[[bytes], Any]:
    """Choose the fastest parser that is exact for all these payloads.

    Raises:
        ValueError: (the parser) the payload is not JSON, or not to orjson.
    """
    # A comma is what may stand around a number, so none at a payload's ends is overlooked.
    together = b",".join(raws)
    if has_plain_numbers(together):
        return orjson.loads
    return parse_json if has_odd_number(together) else parse_json_long


def parse_payloads(raws: Sequence[bytes]) -> list[Any]:
    """Return what payloads parse to, as `parse_json` does it.

    Raises:
        ValueError, MessageError: one of them is not JSON.
    """
    docs: list[Any] = []
    for start in range(0, len(raws), _PARSE_CHUNK_MESSAGES):
        some = raws[start : start + _PARSE_CHUNK_MESSAGES]
        docs += map(choose_parser(some), some)
    return docs


def payloads_of(batch: Batch) -> list[bytes]:
    """Return the payload of each message, in order: what `Message.raw` returns.

    Raises:
        ValueError: a document has no form as JSON.
    """
    if len(batch) > 1:
        serialise_batch(batch)
    return [message.raw for message in batch]


def serialise_batch(batch: Batch) -> None:
    """Write the payloads of messages that are about to be used as bytes, as far as they can be."""
    for start in range(0, len(batch), _PARSE_CHUNK_MESSAGES):
        pending = [m for m in batch[start : start + _PARSE_CHUNK_MESSAGES] if m._raw is None]
        with suppress(ValueError):
            written = dump_json_each([message._doc for message in pending])
            for message, raw in zip(pending, written, strict=True):
                message._raw = raw


def _parse_chunk(batch: Batch, keep: bool) -> list[Any]:
    docs = [message._doc for message in batch]
    # By identity: `count` and `in` would compare every document with the mark.
    marks = list(map(id, docs))
    unset = marks.count(id(UNPARSED))
    if unset == 0:
        return docs
    whole = unset == len(batch)
    pending = batch if whole else [message for message in batch if message._doc is UNPARSED]
    raws = [message._raw or b"" for message in pending]
    parsed = list(map(choose_parser(raws), raws))
    if keep:
        for message, doc in zip(pending, parsed, strict=True):
            message._doc = doc
    if whole:
        return parsed
    rest = iter(parsed)
    return [next(rest) if doc is UNPARSED else doc for doc in docs]
