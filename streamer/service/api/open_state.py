"""The state that a stream holds now: what a change of its config keeps or loses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamer.plan import make_plan
from streamer.service.api import schemas as s
from streamer.service.fleet.managed_stream import ManagedStream

OPEN_STATE_SCHEMA: Final = {
    "anyOf": [
        s.object_schema(
            windows=s.MAYBE_INTEGER,
            messages=s.INTEGER,
            bytes=s.INTEGER,
            state_keys=s.INTEGER,
            buffers=s.list_schema(
                s.object_schema(
                    label=s.STRING, kind=s.STRING, windows=s.MAYBE_INTEGER, messages=s.INTEGER
                )
            ),
        ),
        {"type": "null"},
    ]
}
"""The schema of `describe_open_state`."""


def describe_open_state(managed: ManagedStream) -> dict[str, Any] | None:
    """Return how many windows are open, what is in them, and of how many keys state is kept.

    None when nobody knows: no micro-batch has ended since the stream's start. `windows` is null for
    windows that are not counted, such as those of a number of messages. A stream that stands has
    the figures of its newest micro-batch.
    """
    snapshot = managed.view.current_state().snapshot
    if snapshot.batch < 0:
        return None
    return {
        "windows": _count_windows(snapshot.open_windows, snapshot.held),
        "messages": snapshot.held,
        "bytes": snapshot.size,
        "state_keys": snapshot.state_keys,
        "buffers": _list_buffers(managed),
    }


def _count_windows(windows: int, messages: int) -> int | None:
    return windows if windows or not messages else None


def _list_buffers(managed: ManagedStream) -> list[dict[str, Any]]:
    plan = make_plan(managed.config, name=managed.stream_id)
    run = managed.run
    listed: Mapping[str, Any] = run.list_windows() if run is not None else {}
    by_label: Mapping[str, Mapping[str, Any]] = listed.get("buffers") or {"": listed}
    labels = [one.label for one in plan.buffers] or [""]
    rows = []
    for label, window in zip(labels, plan.windows, strict=False):
        known = by_label.get(label, {})
        if "open" in known:
            windows = _count_windows(known["open"], known["messages"])
            row = {"windows": windows, "messages": known["messages"]}
            rows.append({"label": label, "kind": window.describe(), **row})
    return rows
