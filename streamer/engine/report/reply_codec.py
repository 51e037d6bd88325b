"""Answers to requests on their way from a task to the driver."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgpack

from streamer.core.message import Batch, Message
from streamer.window.pack.metadata_codec import decode_meta, encode_meta

_NO_REFUSALS: Mapping[str, str] = MappingProxyType({})


def encode_replies(
    answers: Mapping[str, Batch], refusals: Mapping[str, str] = _NO_REFUSALS
) -> bytes | None:
    """Return the requests of a run with what answers them; None when there are none.

    Args:
        answers: the requests, each with the messages that answer it.
        refusals: why some of them were refused.
    """
    if not answers:
        return None
    bodies = {
        request: [(encode_meta(one.meta, one.error), one.raw) for one in messages]
        for request, messages in answers.items()
    }
    body: bytes = msgpack.packb([bodies, dict(refusals)])
    return body


def decode_replies(body: bytes) -> tuple[dict[str, Batch], dict[str, str]]:
    """Read what `packed` has made: answers and refusals, by request."""
    bodies, refusals = msgpack.unpackb(body, strict_map_key=False)
    answers = {
        request: [_decode_message(meta, raw) for meta, raw in messages]
        for request, messages in bodies.items()
    }
    return answers, refusals


def _decode_message(meta: bytes, raw: bytes) -> Message:
    decoded, error = decode_meta(meta)
    return Message(raw, decoded, error)
