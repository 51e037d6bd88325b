"""Batches for outputs of AWS."""

from __future__ import annotations

from typing import Any

from streamer.core.message import Message
from tests.components.outputs.scripted import Seen, built


def send(yaml: str, batch: list[Message]) -> Any:
    """Send a batch by an output; return what has failed of it, or None."""
    [error] = built(yaml).deliver([batch], Seen().ex).errors
    return error
