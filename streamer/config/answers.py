"""What answers requests where none waits for an answer: warnings of a thorough lint."""

from __future__ import annotations

from streamer import catalog
from streamer.config.reading import Reading
from streamer.spec import Kind, ParsedComponent


def check_answers(reading: Reading, buffer: ParsedComponent | None) -> None:
    """Name each `sync_response` that nobody hears.

    Args:
        reading: has what answers, and gets the findings.
        buffer: the config's buffer.
    """
    if not any(one.component.kind == Kind.INPUT for one in reading.served):
        message = "a sync_response answers nobody: only an http_server input waits for answers"
        hint = "read with http_server, or remove it"
    elif buffer is not None and catalog.makes_windows(buffer):
        message = (
            f"a sync_response answers nobody where {buffer.name} holds messages: requests do not "
            "wait for a window, they are answered when their messages are safe on disk"
        )
        hint = "remove it, or the buffer"
    else:
        return
    for key in reading.answers:
        reading.findings.at(key, "unheard_response", message, hint)
