"""`/ready`: whether messages flow, by the inputs and outputs that they flow through.

A stream is ready once it has delivered its first micro-batch, which comes whether or not there is
a message: then Spark's workers, the input and the output have worked together. How long windows are
does not matter.

A stream that stops, and one whose windows a deploy lets out, is not ready from that moment on,
though its ends are connected: whoever sends it messages has the time of the stop to look for
another one.

The body is Benthos's: one status for each end, those inside of a `broker` and its like singly.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from streamer.config import Config
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.sdk.spec.children import child_components
from streamer.service.monitoring.stream_condition import derive_condition
from streamer.service.monitoring.stream_view import StreamState, StreamView


class EndState(NamedTuple):
    """An input or an output that messages come from or go to.

    Attributes:
        kind: which of both.
        label: its label, or an empty string.
        path: where it stands in the config, `output.broker.outputs.0`.
        connected: whether messages flow there.
        problem: why not, where that is known.
    """

    kind: Kind
    label: str
    path: str
    connected: bool
    problem: str


def end_states(view: StreamView, now: StreamState) -> list[EndState]:
    """Return which ends of a stream are connected at a moment.

    Inputs and outputs count as connected when the stream has started, which has opened them.
    While a micro-batch is tried again, the end that it fails at does not; when it fails elsewhere,
    or nobody knows where, none of them does, since no message flows.
    """
    ends = list(_iter_ends(view.config))
    blamed = [end for end in ends if _is_blamed(end, now)] or ends
    states = []
    for end in ends:
        problem = now.problem if now.problem and end in blamed else ""
        connected = view.is_running and not problem
        states.append(EndState(end.kind, end.label, end.path, connected, problem))
    return states


def check_readiness(view: StreamView) -> tuple[bool, dict[str, Any]]:
    """Return whether a stream is ready, and what the endpoint says; see `end_states`."""
    statuses, now = [], view.current_state()
    for end in end_states(view, now):
        entry = {"label": end.label, "path": end.path, "connected": end.connected}
        statuses.append({**entry, "error": end.problem} if end.problem else entry)
    connected = all(status["connected"] for status in statuses)
    reason = unready_reason(view, now)
    body: dict[str, Any] = {"error": reason} if reason else {}
    at = time.time()
    condition = derive_condition(view, now, at).to_document(at)
    return connected and not reason, {**body, "condition": condition, "statuses": statuses}


def unready_reason(view: StreamView, now: StreamState) -> str:
    """Return why a stream is not ready that no end is the reason of; empty for no such reason."""
    if view.has_ended:
        return "stream terminated"
    reason = view.unready_reason()
    if reason or now.problem or now.snapshot.batch >= 0:
        return reason
    phase = view.waits_for
    return f"the stream is starting: {phase}" if phase else "the stream is starting"


def _is_blamed(end: ParsedComponent, now: StreamState) -> bool:
    """Return whether a failure comes from an endpoint, from a part of one, or from its parent."""
    path, blamed = f"root.{end.path}.", f"{now.problem_labels.get('path', '')}."
    return bool(now.problem) and (path.startswith(blamed) or blamed.startswith(path))


def _iter_ends(config: Config) -> Iterator[ParsedComponent]:
    yield from _iter_leaves(config, config.input, ())
    for output in config.outputs:
        yield from _iter_leaves(config, output, ())
    for label in config.late_outputs:
        resource = config.resources.get((Kind.OUTPUT, label))
        if resource is not None:
            yield from _iter_leaves(config, resource, ())


def _iter_leaves(
    config: Config, component: ParsedComponent, within: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    """Return the ends that a component has inside, or itself when it has none."""
    if component.name == "resource":
        resource = config.resources.get((component.kind, component.config))
        if resource is not None and component.config not in within:
            yield from _iter_leaves(config, resource, (*within, component.config))
        return
    parts = [part for part in child_components(component) if part.kind is component.kind]
    if not parts:
        yield component
    for part in parts:
        yield from _iter_leaves(config, part, within)
