"""Parse and write the payloads of many messages at once, which is faster than one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson

from streamer.errors import MessageError
from streamer.jsontext.spelling import has_odd_number, has_plain_numbers
from streamer.lazy_batch import LazyBatch
from streamer.message import UNPARSED, Batch
from streamer.value import dump_each, parse_json, parse_long

_AT_ONCE: Final = 500


def documents(batch: Batch, keep: bool) -> list[Any]:
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
    if len(batch) <= _AT_ONCE:
        return _parsed(batch, keep)
    docs: list[Any] = []
    for start in range(0, len(batch), _AT_ONCE):
        docs += _parsed(batch[start : start + _AT_ONCE], keep)
    return docs


def parse_ahead(batch: Batch) -> None:
    """Parse the payloads of messages whose documents are about to be used, as far as they can be.

    A payload that is not JSON is left for `Message.doc` to complain about, and so are those behind
    it in a piece of the batch.
    """
    if isinstance(batch, LazyBatch) and batch.content is not None:
        with suppress(ValueError, MessageError):
            batch.parse()
            return
    for start in range(0, len(batch), _AT_ONCE):
        # The slots are used as they are: this is the inside of a loop over all messages.
        pending = [m for m in batch[start : start + _AT_ONCE] if m._doc is UNPARSED]
        parse = parser_for([message._raw or b"" for message in pending])
        with suppress(ValueError, MessageError):
            for message in pending:
                message._doc = parse(message._raw or b"")


def parser_for(raws: Sequence[bytes]) -> Callable[[bytes], Any]:
    """Return what parses each of some payloads as `parse_json` does, and the fastest that does.

    Raises:
        ValueError: (the parser) the payload is not JSON, or not to orjson.
    """
    # A comma is what may stand around a number, so none at a payload's ends is overlooked.
    together = b",".join(raws)
    if has_plain_numbers(together):
        return orjson.loads
    return parse_json if has_odd_number(together) else parse_long


def parsed(raws: Sequence[bytes]) -> list[Any]:
    """Return what payloads parse to, as `parse_json` does it.

    Raises:
        ValueError, MessageError: one of them is not JSON.
    """
    docs: list[Any] = []
    for start in range(0, len(raws), _AT_ONCE):
        some = raws[start : start + _AT_ONCE]
        docs += map(parser_for(some), some)
    return docs


def payloads(batch: Batch) -> list[bytes]:
    """Return the payload of each message, in order: what `Message.raw` returns.

    Raises:
        ValueError: a document has no form as JSON.
    """
    if len(batch) > 1:
        write_ahead(batch)
    return [message.raw for message in batch]


def write_ahead(batch: Batch) -> None:
    """Write the payloads of messages that are about to be used as bytes, as far as they can be."""
    for start in range(0, len(batch), _AT_ONCE):
        pending = [m for m in batch[start : start + _AT_ONCE] if m._raw is None]
        with suppress(ValueError):
            written = dump_each([message._doc for message in pending])
            for message, raw in zip(pending, written, strict=True):
                message._raw = raw


def _parsed(batch: Batch, keep: bool) -> list[Any]:
    docs = [message._doc for message in batch]
    # By identity: `count` and `in` would compare every document with the mark.
    marks = list(map(id, docs))
    unset = marks.count(id(UNPARSED))
    if unset == 0:
        return docs
    whole = unset == len(batch)
    pending = batch if whole else [message for message in batch if message._doc is UNPARSED]
    raws = [message._raw or b"" for message in pending]
    parsed = list(map(parser_for(raws), raws))
    if keep:
        for message, doc in zip(pending, parsed, strict=True):
            message._doc = doc
    if whole:
        return parsed
    rest = iter(parsed)
    return [next(rest) if doc is UNPARSED else doc for doc in docs]
