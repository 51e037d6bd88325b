"""`sliding_window`: windows that lie where the messages are, in three ways.

KIP-450: "a new window will be inserted into the store only upon seeing a record (with new
timestamp)", "both time bounds are inclusive". eKuiper: "produce an output ONLY when an event
occurs". Kafka Streams as released has a left and a right window for every record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.core.durations import MILLISECOND, format_duration
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field
from streamer.sdk.window_buffer.event_time import (
    FieldProblems,
    WindowBuffer,
    build_buffer,
    find_event_time_problems,
    find_size_problems,
)
from streamer.sdk.window_buffer.fields import (
    ALLOWED_LATENESS,
    EMIT,
    EMIT_ALSO,
    IDLE_TIMEOUT,
    RETENTION_PACKAGES,
    SIZE,
    event_time_fields,
)
from streamer.window.settings.window_types import Sliding

MODE: Final = "mode"


def _check(parsed: ParsedFields) -> FieldProblems:
    yield from find_event_time_problems(parsed)
    yield from find_size_problems(parsed)
    if parsed[MODE].lower() == "event":
        yield from _find_event_mode_problems(parsed)
        return
    if parsed[EMIT].lower() == "forward":
        yield (
            EMIT,
            "cannot be forward with sliding windows, which open over messages that came before "
            "and so need them kept; use final, changes or each",
        )
    if parsed[MODE].lower() == "kafka":
        for name in (SIZE, ALLOWED_LATENESS):
            length = parsed[name] or 0
            if length % MILLISECOND:
                text = f"is {format_duration(length)}, but with mode: kafka it must be whole"
                yield name, f"{text} milliseconds, as Kafka's timestamps are"


def _find_event_mode_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what has no meaning where every message gives its window at once."""
    if parsed[EMIT].lower() != "final":
        text = f"is {parsed[EMIT]}, but with mode: event each message gives its window at once"
        yield EMIT, f"{text}, and no window changes later; leave it out"
    if parsed[EMIT_ALSO]:
        yield EMIT_ALSO, "has no meaning with mode: event, where no window closes; leave it out"
    if parsed[IDLE_TIMEOUT] is not None:
        text = "has no meaning with mode: event, where no window waits to be closed"
        yield IDLE_TIMEOUT, f"{text}; leave it out"


SPEC: Final = Spec(
    Kind.BUFFER,
    "sliding_window",
    "Makes windows of messages within a fixed distance of each other, without a grid.",
    description=(
        "Windows are not on a grid: each message has its own. Both bounds belong to a window.\n"
        "\n"
        "- `mode: forward`, as KIP-450 proposed: a window of `size` begins at every event "
        "time of a key, and is emitted when its end is before the clock by more than "
        "`allowed_lateness`.\n"
        "- `mode: kafka`, as Kafka Streams has it: a window ends at every event time, and one "
        "begins 1 ms after it when there is a message for it. Times are whole milliseconds.\n"
        "- `mode: event`, as in eKuiper: every message immediately emits a batch of its key's "
        "messages in the `size` before it, including itself."
    ),
    status="beta",
    fields=event_time_fields(
        duration_field(
            SIZE,
            "The length of a window: the largest difference of times in it.",
            examples=("10s", "5m"),
        ),
        Field(
            MODE,
            "string",
            "Position and emission of windows: `forward`, `kafka` or `event`; see above.",
            options=("forward", "kafka", "event"),
        ),
    ),
    check=_check,
    examples=(
        Example(
            "The last ten minutes at every message",
            "buffer:\n"
            "  sliding_window:\n"
            "    timestamp_mapping: root = this.ts\n"
            "    key_mapping: root = this.sensor\n"
            "    size: 10m\n"
            "    mode: event\n"
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        root = if batch_index() == 0 {\n"
            '          { "sensor": this.sensor, "most": json("celsius").from_all().max() }\n'
            "        } else { deleted() }\n",
            "With every reading of a sensor comes the highest one of its last ten minutes.",
        ),
    ),
    categories=("Windowing",),
    requires=RETENTION_PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> WindowBuffer:
    """Take the settings, which `SPEC.check` has found to be right."""
    return build_buffer(parsed, Sliding(parsed[SIZE], parsed[MODE].lower()))
