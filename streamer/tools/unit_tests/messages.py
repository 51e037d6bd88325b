"""The messages that a test puts in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamer.core.errors import StreamerError
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch, Message
from streamer.sdk.spec import ParsedFields
from streamer.tools.unit_tests.files import read_relative_file

# Go's JSON, which Benthos makes the content with, is safe inside HTML.
_HTML_ESCAPES = ((b"&", b"\\u0026"), (b"<", b"\\u003c"), (b">", b"\\u003e"))


def make_message(parsed: ParsedFields, directory: Path) -> Message:
    """Make a message of its definition.

    Args:
        parsed: `file_content`, `json_content` or `content` (the first that is there counts), and
            `metadata`.
        directory: where the file is.

    Raises:
        StreamerError: the file cannot be read.
    """
    raw = (parsed["content"] or "").encode()
    if parsed.is_given("json_content"):
        raw = dump_json(parsed["json_content"])
        for char, instead in _HTML_ESCAPES:
            raw = raw.replace(char, instead)
    if parsed["file_content"]:
        raw, problem = read_relative_file(directory, parsed["file_content"])
        if problem:
            raise StreamerError(f"failed to read the message's file_content: {problem}")
    return Message(raw, dict(parsed["metadata"] or {}))


def make_batch(parsed: Sequence[ParsedFields], directory: Path) -> Batch:
    """Make the messages of a batch."""
    return [make_message(one, directory) for one in parsed]
