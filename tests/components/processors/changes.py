"""What a processor makes of messages one by one: payloads, or errors of those it marks."""

from __future__ import annotations

from streamer.core.message import Message

from .conftest import Make, Run


def outcomes(
    make: Make, a_run: Run, yaml: str, *given: str | bytes, meta: dict[str, object] | None = None
) -> list[str]:
    """Return for each message that comes out its payload, or `! ` and the error.

    A message that is marked must be as it was.
    """
    batch = [Message(raw.encode() if isinstance(raw, str) else raw, meta or {}) for raw in given]
    found = [message for part in make(yaml).process(batch, a_run.ex) for message in part]
    unchanged = {message.raw for message in batch}
    assert all(message.raw in unchanged for message in found if message.error is not None)
    errors = sum(message.error is not None for message in found)
    assert a_run.counted == [("processor_error", 1)] * errors
    return [
        message.raw.decode() if message.error is None else f"! {message.error}" for message in found
    ]
