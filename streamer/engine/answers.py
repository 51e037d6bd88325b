"""Answers to requests on their way from a task to the driver."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgpack

from streamer.message import Batch, Message
from streamer.window.metadata import decode_meta, encode_meta

_NONE: Mapping[str, str] = MappingProxyType({})


def packed(answers: Mapping[str, Batch], refusals: Mapping[str, str] = _NONE) -> bytes | None:
    """Return the requests of a run with what answers them; None when there are none.

    Args:
        answers: the requests, each with the messages that answer it.
        refusals: why some of them were refused.
    """
    if not answers:
        return None
    found = {
        request: [(encode_meta(one.meta, one.error), one.raw) for one in messages]
        for request, messages in answers.items()
    }
    body: bytes = msgpack.packb([found, dict(refusals)])
    return body


def unpacked(body: bytes) -> tuple[dict[str, Batch], dict[str, str]]:
    """Read what `packed` has made: answers and refusals, by request."""
    found, refusals = msgpack.unpackb(body, strict_map_key=False)
    answers = {
        request: [_message(meta, raw) for meta, raw in messages]
        for request, messages in found.items()
    }
    return answers, refusals


def _message(meta: bytes, raw: bytes) -> Message:
    decoded, error = decode_meta(meta)
    return Message(raw, decoded, error)
