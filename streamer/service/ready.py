"""`/ready`: whether messages flow. The body is Benthos's."""

from __future__ import annotations

from typing import Any

from streamer.service.view import StreamView
from streamer.spec import ParsedComponent


def readiness(view: StreamView) -> tuple[bool, dict[str, Any]]:
    """Return whether a stream is ready, and what the endpoint says.

    The input counts as connected when the stream has started, and the output when a micro-batch
    has been delivered; neither does while the stream fails and is tried again.
    """
    now = view.now()
    problem = now.problem
    connected = view.started and not problem
    statuses = [
        _status(view.config.input, connected, problem),
        _status(view.config.output, connected and now.snapshot.batch >= 0, problem),
    ]
    body: dict[str, Any] = {"statuses": statuses}
    if view.is_over:
        body = {"error": "stream terminated", **body}
    return all(status["connected"] for status in statuses), body


def _status(component: ParsedComponent, connected: bool, problem: str) -> dict[str, Any]:
    found = {"label": component.label, "path": component.path, "connected": connected}
    return {**found, "error": problem} if problem else found
