"""The messages that a test puts in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamer.errors import StreamerError
from streamer.message import Batch, Message
from streamer.spec import Parsed
from streamer.unit_tests.files import read_beside
from streamer.value import dump_json

# Go's JSON, which Benthos makes the content with, is safe inside HTML.
_ESCAPES = ((b"&", b"\\u0026"), (b"<", b"\\u003c"), (b">", b"\\u003e"))


def make_message(parsed: Parsed, directory: Path) -> Message:
    """Make a message of its definition.

    Args:
        parsed: `file_content`, `json_content` or `content` (the first that is there counts), and
            `metadata`.
        directory: where the file is.

    Raises:
        StreamerError: the file cannot be read.
    """
    raw = (parsed["content"] or "").encode()
    if parsed.given("json_content"):
        raw = dump_json(parsed["json_content"])
        for found, instead in _ESCAPES:
            raw = raw.replace(found, instead)
    if parsed["file_content"]:
        raw, problem = read_beside(directory, parsed["file_content"])
        if problem:
            raise StreamerError(f"failed to read the message's file_content: {problem}")
    return Message(raw, dict(parsed["metadata"] or {}))


def make_batch(parsed: Sequence[Parsed], directory: Path) -> Batch:
    """Make the messages of a batch."""
    return [make_message(one, directory) for one in parsed]
