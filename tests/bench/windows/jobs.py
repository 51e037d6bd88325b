"""The configs of the windows by event time, and the mappings that make one line of a window."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.bench.jobs import FILES, GROUPS, STDIN, TO_FILE, WHOLE, spark

SIZE = 10
"""Seconds of a tumbling or hopping window."""

EVERY = 1
"""Seconds from one hopping window's start to the next one's: ten windows hold an event."""

LATENESS = 5
"""Seconds that windows wait; the peers' watermarks are as far behind."""

LIGHT = """
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          {
            "traffic_light": this.traffic_light,
            "created_at": meta("window_end_timestamp"),
            "total_cars": json("registration_plate").from_all().unique().length(),
            "passengers": json("passengers").from_all().sum(),
          }
        } else { deleted() }
"""
"""The main job without its group_by_value: the window's key is the traffic light."""

_DIFFERENT = 'json("registration_plate").from_all().unique().length()'

COUNTED = GROUPS.replace(_DIFFERENT, "batch_size()")
"""The main job with sums and counts only."""

COUNTED_LIGHT = LIGHT.replace(_DIFFERENT, "batch_size()")
"""The same without its group_by_value."""

SESSION = """
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          {
            "user": this.user,
            "start": meta("window_start_timestamp"),
            "end": meta("window_end_timestamp"),
            "events": batch_size(),
            "total": json("amount").from_all().sum(),
          }
        } else { deleted() }
"""

PAIR = """
pipeline:
  processors:
    - mapping: |
        root.order_id = this.left.order_id
        root.shipment = this.right.shipment
"""


def lights(kind: str, **fields: Any) -> str:
    """A window of each traffic light; `kind` is tumbling_window or hopping_window."""
    settings = {"timestamp_mapping": "root = this.created_at"}
    settings |= {"key_mapping": "root = this.traffic_light", "size": f"{SIZE}s"}
    return _buffer(kind, {**settings, "allowed_lateness": f"{LATENESS}s", **fields})


def sessions(gap_ms: int) -> str:
    """A user's sessions."""
    settings = {"timestamp_mapping": "root = this.at", "key_mapping": "root = this.user"}
    settings |= {"gap": f"{gap_ms}ms", "allowed_lateness": f"{LATENESS}s"}
    return _buffer("session_window", settings)


def together(size: int) -> str:
    """A window of all traffic lights, whose groups the pipeline makes."""
    settings = {"timestamp_mapping": "root = this.created_at", "size": f"{size}s"}
    return _buffer("tumbling_window", settings)


def joined(left: Path, right: Path, within_ms: int, lateness: int) -> str:
    """The inputs and the buffer of a join of two files."""
    inputs = {"left": left, "right": right}
    both = [{"label": k, "file": {"paths": [str(v)]}} for k, v in inputs.items()]
    settings = {
        **{side: side for side in inputs},
        "timestamp_mapping": "root = this.at",
        "key_mapping": "root = this.order_id",
        "within": f"{within_ms}ms",
        "allowed_lateness": f"{lateness}s",
    }
    found: str = yaml.safe_dump({"input": {"broker": {"inputs": both}}})
    return found + _buffer("window_join", settings)


def _buffer(name: str, settings: Mapping[str, Any]) -> str:
    found: str = yaml.safe_dump({"buffer": {name: dict(settings)}}, sort_keys=False)
    return found


def from_files(
    files: Path, buffer: str, pipeline: str, output: Path, master: str, *, whole: bool = False
) -> str:
    """Files → windows (of whole messages, if so wanted) → the pipeline → a file."""
    return FILES.format(files=files) + ending(buffer, pipeline, output, master, whole=whole)


def from_stdin(
    buffer: str, pipeline: str, output: Path, master: str, *, whole: bool = False
) -> str:
    """The standard input, at once → windows → the pipeline → a file."""
    rest = ending(buffer, pipeline, output, master, whole=whole)
    return STDIN + rest + '  trigger_interval: "1ms"\n'


def ending(buffer: str, pipeline: str, output: Path, master: str, *, whole: bool = False) -> str:
    """All but the input."""
    kept = _wanting_late(buffer) if whole else buffer
    return "\n" + kept + pipeline + TO_FILE.format(path=output) + spark(master)


def _wanting_late(buffer: str) -> str:
    """Make windows keep whole messages, as they do where dropped ones are wanted whole."""
    return buffer.rstrip("\n") + "\n" + WHOLE
