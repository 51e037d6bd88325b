"""`window_join`: joins two inputs: messages of the same key whose times are close.

ksqlDB: "find orders that have shipped within the last hour" is `orders JOIN shipments WITHIN 1
HOURS ON …`; the timestamp of a pair "is assigned max(left.ts, right.ts)".
"""

from __future__ import annotations

from typing import Final

from streamer.core.durations import format_duration
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field
from streamer.sdk.window_buffer.event_time import (
    FieldProblems,
    WindowBuffer,
    build_buffer,
    find_key_problems,
    find_lateness_problems,
    find_non_positive,
    find_right_side_problems,
    find_side_problems,
    find_source_clock_problems,
    find_timestamp_problems,
)
from streamer.sdk.window_buffer.fields import (
    CLOCK,
    CLOCK_SCOPE,
    END_FIELD,
    FILTER_FIELD,
    IDLE_TIMEOUT,
    KEY_MAPPING,
    LATE_OUTPUT_FIELD,
    LATENESS_FIELD,
    MAX_AHEAD_FIELD,
    SOURCE_IDLE_FIELD,
    TIMESTAMP_FIELD,
    RightSideFields,
    make_right_side_fields,
)
from streamer.window.settings.window_types import Join

LEFT: Final = "left"
RIGHT: Final = "right"
WITHIN: Final = "within"
BEFORE: Final = "before"
AFTER: Final = "after"
RIGHT_SIDE: Final = RightSideFields("right_timestamp_mapping", "right_key_mapping")
TYPE: Final = "type"


def _check(parsed: ParsedFields) -> FieldProblems:
    yield from find_timestamp_problems(parsed)
    yield from find_key_problems(parsed)
    yield from find_right_side_problems(parsed, RIGHT_SIDE)
    yield from find_lateness_problems(parsed)
    yield from find_non_positive(parsed, IDLE_TIMEOUT, "leave it out to wait for the clock")
    yield from find_source_clock_problems(parsed)
    yield from find_side_problems(parsed, LEFT, RIGHT, "the left side")
    yield from _find_bounds_problems(parsed)


def _find_bounds_problems(parsed: ParsedFields) -> FieldProblems:
    within, before, after = parsed[WITHIN], parsed[BEFORE], parsed[AFTER]
    if within is not None:
        if within < 0:
            text = f"is {format_duration(within)}, but it must not be negative"
            yield WITHIN, f"{text}; 0s joins messages of the same time"
        for name in (BEFORE, AFTER):
            if parsed[name] is not None:
                yield name, "cannot stand beside within, which is both bounds at once; keep one"
    elif before is None and after is None:
        text = "needs how far apart the times of a pair may be: within, or before and after"
        yield "", f"window_join {text}"
    elif (before or 0) + (after or 0) < 0:
        text = f"is {format_duration(after or 0)}, but it must not end before it begins"
        yield AFTER, f"{text}, {format_duration(-(before or 0))} after the left side"


SPEC: Final = Spec(
    Kind.BUFFER,
    "window_join",
    "Joins two inputs: messages of the same key whose event times are close.",
    description=(
        "Each pair of a left and a right message whose keys are equal, and whose times differ "
        'by no more than `within`, becomes one message, `{"left": …, "right": …}`, whose time '
        "is the later one of both. With `type: left` or `outer`, a message that has found no "
        "partner is emitted once none can come any more, with null for the other side.\n"
        "\n"
        "The sides are two inputs of a `broker`, identified by their labels. In a list of "
        "`buffers` a side may also be another buffer: joins of three streams or more are joins of "
        "joins (see [Joins](../../joins.md#three-streams-or-more)).\n"
        "\n"
        "There is one clock, the largest event time of both sides; a message is late when its time "
        "lies more than `allowed_lateness` before the clock. A pair is emitted when its second "
        "message arrives, as a separate batch; messages are stored as long as a match may "
        "arrive.\n"
        "\n"
        "By that clock, a message without a partner waits until later messages arrive, "
        "without a limit. With `clock: system` it is emitted when the time of day has passed "
        "the last possible time of its partner by more than `allowed_lateness`, even if no "
        "message follows. A message is then late only if all its possible partners have left.\n"
        "\n"
        "The metadata are those of the left message, plus those that only the right one has, "
        "and `window_emit` (`event` for a pair; `final`, `idle` or `flush` for a message "
        "without a partner), `window_key`, and the times: `window_max_timestamp` is the later "
        "time of the pair; `window_start_timestamp` and `window_end_timestamp` are the "
        "earlier and the later one, and for a message without a partner the bounds between "
        "which that would have been. A payload that is not JSON becomes text."
    ),
    status="beta",
    fields=(
        Field(
            LEFT,
            "string",
            "The label of the input whose messages are the left side, or of the buffer whose "
            "results are.",
            examples=("orders",),
        ),
        Field(
            RIGHT,
            "string",
            "The label of the input whose messages are the right side, or of the buffer whose "
            "results are.",
            examples=("shipments",),
        ),
        TIMESTAMP_FIELD,
        Field(
            KEY_MAPPING,
            "string",
            "A Bloblang mapping that returns what the messages of a pair agree in (ON). Keys are "
            "the same when they are equal as JSON. Without it, all that are close are pairs.",
            optional=True,
            mapping=True,
            examples=("root = this.order_id",),
        ),
        *make_right_side_fields(RIGHT_SIDE, "the right side", "root = this.order.id"),
        duration_field(
            WITHIN,
            "Maximum distance of the times of a pair, in both directions. Set this, or "
            "`before` and `after` (default 0s each).",
            optional=True,
            examples=("1h",),
        ),
        duration_field(
            BEFORE,
            "Instead of `within`: how much earlier than the left message the right one may be.",
            default="",
            advanced=True,
        ),
        duration_field(
            AFTER,
            "Instead of `within`: how much later than the left message the right one may be.",
            default="",
            advanced=True,
        ),
        Field(
            TYPE,
            "string",
            "Which messages without a partner are emitted too: `inner`, none; `left`, those of "
            "the left side; `outer`, those of both.",
            default="inner",
            options=("inner", "left", "outer"),
        ),
        LATENESS_FIELD,
        Field(
            CLOCK,
            "string",
            "The clock for messages without a partner. `stream` is the largest event time of "
            "both sides, so that a replay of old messages gives the same result. `system` is "
            "the time of day, so that the message is emitted in time even if no other "
            "follows.",
            default="stream",
            options=("stream", "system"),
        ),
        Field(
            CLOCK_SCOPE,
            "string",
            "Whose event times move the stream clock: `stream`, those of both sides, so that the "
            "side that is ahead says what is late; `input`, those of the side that is behind; or "
            "`partition`, those of the Kafka partition that is the furthest behind. With the last "
            "two, a side that lags for hours loses nothing.",
            default="stream",
            options=("stream", "partition", "input"),
        ),
        SOURCE_IDLE_FIELD,
        duration_field(
            IDLE_TIMEOUT,
            "A message waits for a partner no longer than this by the time of day, though the "
            "clock stands still; then it comes out alone, with `type: left` or `outer`. Choose it "
            "longer than partners take to come. Time while the program is down or catches up does "
            "not count.",
            default="",
            examples=("15m",),
        ),
        MAX_AHEAD_FIELD,
        FILTER_FIELD,
        LATE_OUTPUT_FIELD,
        END_FIELD,
    ),
    check=_check,
    begin={"within": "1h"},
    examples=(
        Example(
            "Orders that have shipped within an hour",
            "input:\n"
            "  broker:\n"
            "    inputs:\n"
            "      - label: orders\n"
            "        file: { paths: [ orders.jsonl ] }\n"
            "      - label: shipments\n"
            "        file: { paths: [ shipments.jsonl ] }\n"
            "buffer:\n"
            "  window_join:\n"
            "    left: orders\n"
            "    right: shipments\n"
            "    timestamp_mapping: root = this.ts\n"
            "    key_mapping: root = this.order_id\n"
            "    within: 1h\n",
            "A pair for every shipment of an order that is at most an hour away from it.",
        ),
        Example(
            "Orders that are not paid within ten minutes",
            "input:\n"
            "  broker:\n"
            "    inputs:\n"
            "      - label: orders\n"
            "        kafka_franz: { seed_brokers: [ localhost:9092 ], topics: [ orders ] }\n"
            "      - label: payments\n"
            "        kafka_franz: { seed_brokers: [ localhost:9092 ], topics: [ payments ] }\n"
            "buffer:\n"
            "  window_join:\n"
            "    left: orders\n"
            "    right: payments\n"
            "    timestamp_mapping: root = this.ts\n"
            "    key_mapping: root = this.order\n"
            "    before: 0s\n"
            "    after: 10m\n"
            "    type: left\n"
            "    clock: system\n"
            "    allowed_lateness: 30s\n"
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: root = if this.right == null { this.left } else { deleted() }\n",
            "An order comes out ten minutes and a half after it was made, if no payment has come "
            "by then.",
        ),
    ),
    categories=("Windowing",),
    instead={
        "emit": "pairs always come out at once, and messages without a partner when none can come",
        "having": "leave messages out in the pipeline: `root = if … { deleted() }`",
        "size": "within, or before and after, say how far apart the times of a pair may be",
        "gap": "within, or before and after, say how far apart the times of a pair may be",
    },
)


def build(parsed: ParsedFields, context: BuildContext) -> WindowBuffer:
    """Take the settings, which `SPEC.check` has found to be right."""
    within = parsed[WITHIN]
    window = Join(
        left=parsed[LEFT],
        right=parsed[RIGHT],
        before=(parsed[BEFORE] or 0) if within is None else within,
        after=(parsed[AFTER] or 0) if within is None else within,
        type=parsed[TYPE].lower(),
    )
    return build_buffer(parsed, window, RIGHT_SIDE)
