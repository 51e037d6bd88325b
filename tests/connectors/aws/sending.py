"""Batches for outputs of AWS."""

from __future__ import annotations

from typing import Any

from streamer.core.message import Message
from tests.components.outputs.scripted import Seen, built


def send(yaml: str, batch: list[Message]) -> Any:
    """Send a batch by an output; return what has failed of it, or None."""
    [error] = built(yaml).deliver([batch], Seen().ex).errors
    return error


def process(yaml: str, *batch: Message) -> list[Message]:
    """Return what a processor makes of a batch."""
    from streamer.components.catalog import build_context
    from streamer.config import parse_config

    config = parse_config(f"pipeline:\n  processors:\n    - {yaml}\n")
    processor = build_context(config.resources).build(config.processors[0])
    [made] = processor.process(list(batch), Seen().ex)
    return made  # type: ignore[no-any-return]
