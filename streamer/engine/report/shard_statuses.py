"""Sums over the newest statuses of a stream's shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamer.plan import Plan

Status = Mapping[str, Any]
"""What a shard says after a micro-batch, see `engine.release`."""


def has_ended(plan: Plan, statuses: Sequence[Status]) -> bool:
    """Return whether the input has ended and all windows that are to come out have done so."""
    if len(statuses) < max(plan.shard_count, 1) or not all(one["ended"] for one in statuses):
        return False
    if plan.buffers:
        return not any(one.get("open", 0) for one in statuses if not one["keeps"])
    keeps = plan.window is not None and plan.window.end_of_input == "keep"
    return keeps or not any(status.get("open", 0) for status in statuses)


def newest_window_end(statuses: Sequence[Status]) -> int | None:
    """Return the end of the newest window that any shard knows, Unix ns; None without one."""
    ends = [status.get("newest_end") for status in statuses]
    return max((end for end in ends if end is not None), default=None)
