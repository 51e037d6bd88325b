"""Answers to requests on their way from a task to the driver."""

from __future__ import annotations

from collections.abc import Mapping

import msgpack

from streamer.message import Batch, Message
from streamer.window.metadata import decode_meta, encode_meta


def packed(answers: Mapping[str, Batch]) -> bytes | None:
    """Return the requests of a run with what answers them; None when there are none."""
    if not answers:
        return None
    found = {
        request: [(encode_meta(one.meta, one.error), one.raw) for one in messages]
        for request, messages in answers.items()
    }
    body: bytes = msgpack.packb(found)
    return body


def unpacked(body: bytes) -> dict[str, Batch]:
    """Read what `packed` has made."""
    found = msgpack.unpackb(body, strict_map_key=False)
    return {
        request: [_message(meta, raw) for meta, raw in messages]
        for request, messages in found.items()
    }


def _message(meta: bytes, raw: bytes) -> Message:
    decoded, error = decode_meta(meta)
    return Message(raw, decoded, error)
