"""Parse the payloads of many messages at once, which is faster than one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from streamer.message import Batch, Message
from streamer.value import has_inexact_number, parse_json

_AT_ONCE: Final = 500


def documents(batch: Batch, keep: bool) -> Iterator[Any]:
    """Return the parsed payload of each message, in order.

    Looking for numbers that need the exact parser costs more than parsing when it is done for each
    small payload by itself; so it is done for some hundred together. What is returned is what
    `Message.doc` returns.

    Args:
        batch: the messages.
        keep: whether messages remember their documents.

    Raises:
        ValueError, MessageError: a payload is not JSON; which one, `Message.doc` says.
    """
    for start in range(0, len(batch), _AT_ONCE):
        yield from _parsed(batch[start : start + _AT_ONCE], keep)


def _parsed(batch: Batch, keep: bool) -> list[Any]:
    if any(map(Message.has_doc, batch)):
        return [message.doc if keep else _alone(message) for message in batch]
    raws = [message.raw for message in batch]
    # A comma is what may stand before a number, so no payload's first number is overlooked.
    parse = parse_json if has_inexact_number(b",".join(raws)) else orjson.loads
    docs = [parse(raw) for raw in raws]
    if keep:
        for message, doc in zip(batch, docs, strict=True):
            message._doc = doc  # what `Message.doc` does at its first use
    return docs


def _alone(message: Message) -> Any:
    return message.doc if message.has_doc() else parse_json(message.raw)
