"""`tumbling_window`: windows of a fixed length by event time, one after the other.

Tenzir: "fixed windows of width size … left-closed, right-open intervals: [start, end) … aligned to
the Unix epoch." eKuiper's TUMBLINGWINDOW and ksqlDB's WINDOW TUMBLING are the same.
"""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec, duration_field
from streamer.sdk.window_buffer.event_time import WindowBuffer, build_buffer
from streamer.sdk.window_buffer.fields import RETENTION_PACKAGES, SIZE, event_time_fields
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
    "tumbling_window",
    "Divides a stream into consecutive windows of a fixed length, by event time.",
    description=(
        "A window covers the times from its start up to, and without, its end; windows start "
        "at multiples of `size` since 1970. It is emitted as one batch when its clock has "
        "passed its end by `allowed_lateness`. The clock is the largest event time so far, "
        "unless `clock` is set. Each message gets the window's bounds and its key as metadata "
        "(`window_start_timestamp`, `window_end_timestamp`, `window_key`)."
    ),
    status="beta",
    fields=event_time_fields(
        duration_field(SIZE, "The length of a window.", examples=("5m", "1h", "1d")),
        OFFSET_FIELD,
        TIMEZONE_FIELD,
        EMPTY_WINDOWS_FIELD,
    ),
    check=find_grid_problems,
    examples=(
        Example(
            "Count events by severity",
            "buffer:\n"
            "  tumbling_window:\n"
            "    timestamp_mapping: root = this.ts\n"
            "    size: 1h\n"
            "    allowed_lateness: 5m\n"
            "pipeline:\n"
            "  processors:\n"
            "    - group_by_value:\n"
            "        value: '${! json(\"severity\") }'\n"
            "    - mapping: |\n"
            "        root = if batch_index() == 0 {\n"
            "          {\n"
            '            "severity": this.severity,\n'
            '            "events": batch_size(),\n'
            '            "start": meta("window_start_timestamp"),\n'
            '            "end": meta("window_end_timestamp"),\n'
            "          }\n"
            "        } else { deleted() }\n",
            "Windows of an hour that wait for five minutes of messages out of order.",
        ),
        Example(
            "Days of a time zone",
            "buffer:\n"
            "  tumbling_window:\n"
            "    timestamp_mapping: root = this.ordered_at\n"
            "    key_mapping: root = this.shop\n"
            "    size: 1d\n"
            "    timezone: Europe/Berlin\n",
            "Each shop's orders of a day, from midnight to midnight in Berlin.",
        ),
    ),
    categories=("Windowing",),
    requires=RETENTION_PACKAGES,
    instead={"emit_empty": EMPTY_HINT, "fill": EMPTY_HINT},
)


def build(parsed: ParsedFields, context: BuildContext) -> WindowBuffer:
    """Take the settings, which `SPEC.check` has found to be right."""
    return build_buffer(parsed, read_grid(parsed))
