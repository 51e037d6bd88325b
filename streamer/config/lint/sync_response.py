"""Lints components that answer requests where no request waits: warnings of a thorough lint."""

from __future__ import annotations

from streamer.components import catalog
from streamer.config.read_context import ReadContext
from streamer.sdk.spec import Kind, ParsedComponent


def check_sync_responses(context: ReadContext, buffer: ParsedComponent | None) -> None:
    """Report each `sync_response` that answers no request.

    Args:
        context: has what answers, and gets the findings.
        buffer: the config's buffer.
    """
    if not any(one.component.kind == Kind.INPUT for one in context.served_components):
        message = (
            "no request waits for this sync_response: only an http_server input waits for answers"
        )
        hint = "read with http_server, or remove it"
    elif buffer is not None and catalog.makes_windows(buffer):
        message = (
            f"no request waits for a sync_response where {buffer.name} holds messages: "
            "requests do not wait for a window, they are answered when their messages are safe on "
            "disk"
        )
        hint = "remove it, or the buffer"
    else:
        return
    for key in context.sync_responses:
        context.findings.add_at(key, "unheard_response", message, hint)
