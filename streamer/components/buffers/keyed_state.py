"""`keyed_state`: no windows; the pipeline behind it keeps state by key.

Flink's keyed streams (`keyBy`) and their state. Messages go on at once, each as a batch of one, and
those of a key in order of arrival; what mappings and processors keep of a key is in the checkpoint.
"""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec import (
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)
from streamer.sdk.window_buffer.event_time import (
    FieldProblems,
    WindowBuffer,
    build_buffer,
    find_key_problems,
    find_lateness_problems,
    find_state_ttl_problems,
    find_timestamp_problems,
)
from streamer.sdk.window_buffer.fields import (
    ALLOWED_LATENESS,
    END_FIELD,
    FILTER_FIELD,
    KEY_FIELD,
    LATE_OUTPUT_FIELD,
    MAX_AHEAD_FIELD,
    ORDER,
    STATE_TTL_FIELD,
    TIMESTAMP_FIELD,
)
from streamer.window.settings.window_types import KeyedMessages

_ORDER_FIELD: Final = Field(
    ORDER,
    "string",
    "In which order the messages of a key go on: `arrival`, as they come, at once; or "
    "`event_time`, by `timestamp_mapping`, those of one time as they came. Then a message waits "
    "until the largest event time is `allowed_lateness` beyond its own, and the last ones wait for "
    "others, or for the end of the input.",
    default="arrival",
    options=("arrival", "event_time"),
)
_LATENESS_FIELD: Final = duration_field(
    ALLOWED_LATENESS,
    "With `order: event_time`, how long messages wait, by event time, for others that are out of "
    "order. A message that comes later than that is late: it is dropped, logged and counted "
    '(reason "late").',
    default="0s",
    examples=("10s", "2m"),
)


def _check(parsed: ParsedFields) -> FieldProblems:
    if parsed[ALLOWED_LATENESS] and parsed[ORDER].lower() == "arrival":
        hint = "remove it, or add order: event_time"
        yield (
            ALLOWED_LATENESS,
            f"has no meaning with order: arrival, in which nothing waits; {hint}",
        )
    yield from find_timestamp_problems(parsed)
    yield from find_key_problems(parsed)
    yield from find_lateness_problems(parsed)
    yield from find_state_ttl_problems(parsed)


SPEC: Final = Spec(
    Kind.BUFFER,
    "keyed_state",
    "Passes messages immediately, with state by key for the pipeline.",
    description=(
        "There are no windows: each message is a batch by itself. The messages of a key pass "
        "the pipeline one after the other, from all partitions: immediately in arrival order, "
        "or with `order: event_time` in order of their times. There, functions such as `lag`, "
        "`latest`, `had_changed`, `acc_sum` and `accumulate` store values of the key, and the "
        "processors `throttle` and `deduplicate` depend on earlier messages. The checkpoint "
        "has this state: after a restart or a replay the results are the same. See [State by "
        "key](../../state.md).\n"
        "\n"
        "Time is the event time, if `timestamp_mapping` gives one, and never runs backwards: "
        "a message out of order counts as of the largest time before it."
    ),
    status="beta",
    fields=(
        KEY_FIELD,
        TIMESTAMP_FIELD,
        _ORDER_FIELD,
        _LATENESS_FIELD,
        STATE_TTL_FIELD,
        FILTER_FIELD,
        MAX_AHEAD_FIELD,
        LATE_OUTPUT_FIELD,
        END_FIELD,
    ),
    check=_check,
    examples=(
        Example(
            "How much a meter has risen since its last reading",
            "buffer:\n"
            "  keyed_state:\n"
            "    key_mapping: root = this.meter\n"
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        root = this\n"
            "        root.rise = this.kwh - lag(this.kwh, 1, this.kwh)\n",
        ),
        Example(
            "By the readings' own times, though they come out of order",
            "buffer:\n"
            "  keyed_state:\n"
            "    key_mapping: root = this.meter\n"
            "    timestamp_mapping: root = this.at\n"
            "    order: event_time\n"
            "    allowed_lateness: 1m\n"
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: root.rise = this.kwh - lag(this.kwh, 1, this.kwh)\n",
        ),
        Example(
            "Only what has changed",
            "buffer:\n"
            "  keyed_state:\n"
            "    key_mapping: root = this.device\n"
            "    timestamp_mapping: root = this.ts\n"
            "    state_ttl: 7d\n"
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        root = if !had_changed(this.status) { deleted() }\n",
            "A device that has been silent for a week begins afresh.",
        ),
    ),
    categories=("Windowing",),
)


def build(parsed: ParsedFields, context: BuildContext) -> WindowBuffer:
    """Take the settings, which `SPEC.check` has found to be right."""
    return build_buffer(parsed, KeyedMessages())
