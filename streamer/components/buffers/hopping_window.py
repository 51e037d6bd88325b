"""`hopping_window`: windows of a fixed length by event time that overlap.

ksqlDB: "defined by two properties: the window's duration and its advance, or hop, interval."
Tenzir: "An event that falls into several overlapping windows is copied to each."
"""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec, duration_field
from streamer.sdk.window_buffer.event_time import WindowBuffer, build_buffer
from streamer.sdk.window_buffer.fields import EVERY, RETENTION_PACKAGES, SIZE, event_time_fields
from streamer.sdk.window_buffer.grid import (
    EMPTY_HINT,
    EMPTY_WINDOWS_FIELD,
    OFFSET_FIELD,
    TIMEZONE_FIELD,
    find_grid_problems,
    read_grid,
)

SPEC: Final = Spec(
    Kind.BUFFER,
    "hopping_window",
    "Divides a stream into overlapping windows of a fixed length, by event time.",
    description=(
        "A window starts at every multiple of `every` since 1970 and covers the times from "
        "its start up to, and without, its end. A message is in each window that covers its "
        "time, and is stored once for all of them. Windows close and are emitted like those "
        "of `tumbling_window`."
    ),
    status="beta",
    fields=event_time_fields(
        duration_field(SIZE, "The length of a window.", examples=("10m",)),
        duration_field(
            EVERY,
            "The time from one window's start to the next one's, not longer than `size` (advance, "
            "hop). When empty, windows follow one another.",
            default="",
            examples=("1m",),
        ),
        OFFSET_FIELD,
        TIMEZONE_FIELD,
        EMPTY_WINDOWS_FIELD,
    ),
    check=find_grid_problems,
    examples=(
        Example(
            "Detect brute-force logins",
            "buffer:\n"
            "  hopping_window:\n"
            "    timestamp_mapping: root = this.ts\n"
            "    key_mapping: root = [ this.user, this.src_ip ]\n"
            '    filter: this.outcome == "failure"\n'
            "    size: 10m\n"
            "    every: 1m\n"
            "    allowed_lateness: 2m\n"
            "    idle_timeout: 5m\n"
            "    having: batch_size() >= 20\n",
            "Twenty failed logins of one user from one address within ten minutes, looked for "
            "every minute.",
        ),
    ),
    categories=("Windowing",),
    requires=RETENTION_PACKAGES,
    instead={"emit_empty": EMPTY_HINT, "fill": EMPTY_HINT},
)


def build(parsed: ParsedFields, context: BuildContext) -> WindowBuffer:
    """Take the settings, which `SPEC.check` has found to be right."""
    return build_buffer(parsed, read_grid(parsed))
