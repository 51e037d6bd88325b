"""Description of a delivered micro-batch, for whoever looks into its speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.engine.report.stream_metrics import Snapshot


def describe_delivery(
    now: Snapshot,
    statuses: Mapping[int, Mapping[str, Any]],
    frames: Sequence[Frame],
    took: float,
) -> dict[str, Any]:
    """Return the fields of the log line of a micro-batch.

    Args:
        now: the stream after it.
        statuses: of the shards, by number.
        frames: what its tasks made.
        took: how long it took to write, s.
    """
    data = [len(frame.body) for frame in frames if frame.kind == FrameKind.DATA]
    entries: dict[str, Any] = {
        "micro_batch": now.batch,
        "messages": now.messages,
        "dropped": sum(now.dropped.values()),
        "frames": len(data),
        "bytes": sum(data),
        "write_ms": round(took * 1e3, 1),
    }
    if any("held" in status for status in statuses.values()):
        # By shard: a key that has most of the messages shows here.
        entries["held"] = [statuses[shard].get("held", 0) for shard in sorted(statuses)]
    return entries
