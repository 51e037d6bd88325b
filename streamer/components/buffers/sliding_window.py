"""`sliding_window`: windows that lie where the messages are, in three ways.

KIP-450: "a new window will be inserted into the store only upon seeing a record (with new
timestamp)", "both time bounds are inclusive". eKuiper: "produce an output ONLY when an event
occurs"; its window may have a delay, and a condition, and leaves one of its bounds out. pandas and
Polars name the bounds that belong to a window with `closed`. Tenzir's trailing windows wait for the
clock, and have a cadence. Kafka Streams as released has a left and a right window for every record.
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
    find_non_positive,
    find_repeat_problems,
    find_size_problems,
)
from streamer.sdk.window_buffer.fields import (
    ALLOWED_LATENESS,
    EMIT,
    EMIT_ALSO,
    EMIT_WHEN,
    IDLE_TIMEOUT,
    RETENTION_PACKAGES,
    SIZE,
    event_time_fields,
)
from streamer.window.settings.window_types import Sliding

MODE: Final = "mode"
DELAY: Final = "delay"
EMIT_AT: Final = "emit_at"
EMIT_EVERY: Final = "emit_every"
CLOSED: Final = "closed"


def _check(parsed: ParsedFields) -> FieldProblems:
    yield from find_event_time_problems(parsed)
    yield from find_size_problems(parsed)
    yield from find_repeat_problems(parsed, EMIT_WHEN, "condition")
    yield from find_non_positive(parsed, EMIT_EVERY, "leave it out for a window at every message")
    if (parsed[DELAY] or 0) < 0:
        yield DELAY, f"is {format_duration(parsed[DELAY])}, but a window cannot end in the past"
    if parsed[MODE].lower() != "event":
        for name in (DELAY, EMIT_WHEN, EMIT_EVERY):
            if parsed[name]:
                text = "has no meaning without mode: event, in which a message emits a window"
                yield name, f"{text}; remove it, or use that mode"
        if parsed[CLOSED].lower() != "both":
            text = f"is {parsed[CLOSED]}, but both bounds belong to windows without mode: event"
            yield CLOSED, f"{text}; leave it out, or use that mode"
        if parsed[EMIT_AT].lower() != "arrival":
            text = f"is {parsed[EMIT_AT]}, but only with mode: event a message emits a window"
            yield EMIT_AT, f"{text}; leave it out, or use that mode"
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
    if parsed[CLOSED].lower() in ("left", "neither") and not parsed[DELAY]:
        text = f"is {parsed[CLOSED]}, but a window ends with its own message, which belongs to it"
        yield CLOSED, f"{text}; use right or both, or add a {DELAY}"
    if parsed[EMIT_ALSO]:
        yield EMIT_ALSO, "has no meaning with mode: event, where no window closes; leave it out"
    if parsed[IDLE_TIMEOUT] is not None and not _waits(parsed):
        text = "has no meaning with mode: event, where no window waits to be closed"
        yield IDLE_TIMEOUT, f"{text}; leave it out"


def _waits(parsed: ParsedFields) -> bool:
    """Return whether the window of a message waits for the clock."""
    return parsed[EMIT_AT].lower() == "event_time" or bool(parsed[DELAY])


SPEC: Final = Spec(
    Kind.BUFFER,
    "sliding_window",
    "Makes windows of messages within a fixed distance of each other, without a grid.",
    description=(
        "Windows are not on a grid: each message has its own. Both bounds belong to a window, "
        "unless `closed` says otherwise.\n"
        "\n"
        "- `mode: forward`, as KIP-450 proposed: a window of `size` begins at every event "
        "time of a key, and is emitted when its end is before the clock by more than "
        "`allowed_lateness`.\n"
        "- `mode: kafka`, as Kafka Streams has it: a window ends at every event time, and one "
        "begins 1 ms after it when there is a message for it. Times are whole milliseconds.\n"
        "- `mode: event`, as in eKuiper: every message immediately emits a batch of its key's "
        "messages in the `size` before it, including itself. With `emit_at: event_time`, or with "
        "a `delay`, the window waits until the clock has come so far; `emit_when` and "
        "`emit_every` choose the messages that emit one."
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
        duration_field(
            DELAY,
            "With `mode: event`, how much later than its message a window ends: it also holds the "
            "messages up to that time, and is emitted when the clock reaches its end plus "
            "`allowed_lateness`.",
            default="0s",
            examples=("5s",),
        ),
        Field(
            EMIT_AT,
            "string",
            "With `mode: event`, when a message emits its window: at its `arrival`, with the "
            "messages that have come; or by `event_time`, when the clock is beyond it by "
            "`allowed_lateness`, with all messages before it, in order of their times. With a "
            "`delay` it is always by event time. `idle_timeout` then bounds the wait.",
            default="arrival",
            options=("arrival", "event_time"),
        ),
        Field(
            EMIT_WHEN,
            "string",
            "With `mode: event`, a Bloblang query: only a message for which it is true emits a "
            "window. All others are still in the windows of those. When it fails or gives "
            "anything but true or false, it does not hold, and that is logged.",
            optional=True,
            mapping=True,
            examples=('this.status == "failure"',),
        ),
        duration_field(
            EMIT_EVERY,
            "With `mode: event`, the least distance of windows of a key (cadence). It begins with "
            "the first message; once it is over, the next message with `emit_when` emits its "
            "window and begins the next one. It may be longer than `size`.",
            default="",
            examples=("1m",),
        ),
        Field(
            CLOSED,
            "string",
            "With `mode: event`, the bounds that belong to a window: `both`; `right`, without a "
            "message at exactly `size` before its own; `left`, without one at exactly the end of "
            "the `delay`; or `neither`.",
            default="both",
            options=("both", "right", "left", "neither"),
            advanced=True,
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
    conditional = bool((parsed[EMIT_WHEN] or "").strip())
    kind = Sliding(
        parsed[SIZE],
        parsed[MODE].lower(),
        delay=parsed[DELAY] or 0,
        waits=_waits(parsed),
        conditional=conditional,
        emit_every=parsed[EMIT_EVERY],
        closed=parsed[CLOSED].lower(),
    )
    return build_buffer(parsed, kind)
