"""The configs that are measured: the traffic lights of system_window's documentation."""

from __future__ import annotations

from pathlib import Path

GROUPS = """
pipeline:
  processors:
    # Group messages of the window into batches of common traffic light IDs
    - group_by_value:
        value: '${! json("traffic_light") }'
    # Reduce each batch to a single message by deleting indexes > 0, and
    # aggregate the car and passenger counts.
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

FILES = """
input:
  file:
    paths: ["{files}"]
"""

STDIN = """
input:
  stdin: {}
"""

WINDOW = """
buffer:
  system_window:
    timestamp_mapping: root = this.created_at
    size: {size}
    slide: "{slide}"
    allowed_lateness: {lateness}
    end_of_input: flush
    on_expired: keep
"""

WHOLE = """    late_output: rest
output_resources:
  - label: rest
    drop: {}
"""
"""Dropped messages are wanted whole: so windows keep their messages, and nothing is folded."""

LIVE = """
input:
  generate:
    interval: 1ms
    mapping: |
      root.traffic_light = "light-" + random_int(min: 1, max: 1000).string()
      root.created_at = now()
      root.registration_plate = "AB" + random_int(min: 10000, max: 60000).string() + " DEF"
      root.passengers = random_int(min: 1, max: 5)
buffer:
  system_window:
    timestamp_mapping: root = this.created_at
    size: {size}
"""

STATELESS = """
pipeline:
  processors:
    - mapping: |
        root = this
        root.cars = 1
        root.passengers = this.passengers + 1
output:
  drop: {}
"""

TO_FILE = """
output:
  file:
    path: "{path}"
"""


def windowed(
    files: Path,
    output: Path,
    size: str,
    slide: str = "",
    lateness: str = "5s",
    *,
    master: str,
    whole: bool = False,
) -> str:
    """Files of the workload → windows (of whole messages, if so wanted) → groups → a file."""
    return (
        FILES.format(files=files)
        + WINDOW.format(size=size, slide=slide, lateness=lateness)
        + (WHOLE if whole else "")
        + GROUPS
        + TO_FILE.format(path=output)
        + spark(master)
    )


def stateless(files: Path, *, master: str) -> str:
    """Files of the workload → a mapping → nothing."""
    return FILES.format(files=files) + STATELESS + spark(master)


def filling(output: Path, size: str, *, master: str, whole: bool = False) -> str:
    """The standard input → windows (of whole messages, if so wanted) → groups → a file."""
    window = WINDOW.format(size=size, slide="", lateness="5s") + (WHOLE if whole else "")
    return STDIN + window + GROUPS + TO_FILE.format(path=output) + spark(master)


def live(size: str) -> str:
    """1,000 events a second → windows → groups → the standard output, all by default."""
    return LIVE.format(size=size) + GROUPS


def spark(master: str) -> str:
    """The `spark` section."""
    return f'\nspark:\n  master: "{master}"\n'
