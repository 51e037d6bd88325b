"""The fields that the window buffers which follow event times have in common.

Defaults and meaning are those of Tenzir's `window`, of eKuiper's windows and of ksqlDB's WINDOW
clause, as far as they have the like.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from streamer.sdk.spec import Field, Kind, Package, duration_field

TIMESTAMP_MAPPING: Final = "timestamp_mapping"
KEY_MAPPING: Final = "key_mapping"
EMPTY_WINDOWS: Final = "empty_windows"
FOR: Final = "for"
FILL: Final = "fill"
KEYS: Final = "keys"
GAP_MAPPING: Final = "gap_mapping"
BEGIN_WHEN: Final = "begin_when"
EMIT_WHEN: Final = "emit_when"
SIZE: Final = "size"
EVERY: Final = "every"
OFFSET: Final = "offset"
TIMEZONE: Final = "timezone"
CLOCK: Final = "clock"
CLOCK_SCOPE: Final = "clock_scope"
KEY_RETENTION: Final = "key_retention"
SOURCE_IDLE_TIMEOUT: Final = "source_idle_timeout"
ALLOWED_LATENESS: Final = "allowed_lateness"
MAX_AHEAD: Final = "max_ahead"
IDLE_TIMEOUT: Final = "idle_timeout"
FILTER: Final = "filter"
EMIT: Final = "emit"
EMIT_ALSO: Final = "emit_also"
ORDER: Final = "order"
HAVING: Final = "having"
LATE_OUTPUT: Final = "late_output"
RETENTION: Final = "retention"
END_OF_INPUT: Final = "end_of_input"
STATE_TTL: Final = "state_ttl"


class RightSideFields(NamedTuple):
    """The fields of a join with the mappings of its right side alone.

    Attributes:
        timestamp: the name of the field with the mapping of event times.
        key: the name of the field with the mapping of keys.
    """

    timestamp: str
    key: str


TIMESTAMP_FIELD: Final = Field(
    TIMESTAMP_MAPPING,
    "string",
    "A Bloblang mapping that returns a message's event time: Unix seconds as a number (up to nine "
    "decimals count), a date and time with zone as text (RFC 3339, ISO 8601), or a timestamp. The "
    "default is the time of arrival. When it fails or returns anything else, the message is "
    'dropped, logged and counted (reason "timestamp").',
    default="root = now()",
    mapping=True,
    examples=("root = this.created_at", 'root = meta("kafka_timestamp_unix").number()'),
)


def make_right_side_fields(names: RightSideFields, side: str, key: str) -> tuple[Field, Field]:
    """Return the fields with the mappings of a join's right side alone.

    Args:
        names: their names.
        side: the right side in words.
        key: an example of a key mapping.
    """
    return (
        Field(
            names.timestamp,
            "string",
            f"A mapping as `{TIMESTAMP_MAPPING}`, for messages of {side} alone. Without it, that "
            "mapping is for both sides.",
            optional=True,
            mapping=True,
            advanced=True,
            examples=("root = this.updated_at",),
        ),
        Field(
            names.key,
            "string",
            f"A mapping as `{KEY_MAPPING}`, for messages of {side} alone. Without it, that mapping "
            "is for both sides.",
            optional=True,
            mapping=True,
            advanced=True,
            examples=(key,),
        ),
    )


KEY_FIELD: Final = Field(
    KEY_MAPPING,
    "string",
    "A Bloblang mapping that returns the key of a message: each key has windows of its own (GROUP "
    "BY). Any value is a key; keys are the same when they are equal as JSON, so 1 and 1.0 are one "
    "key and null is one too. When the mapping fails or deletes, the message is dropped, logged "
    'and counted (reason "key"). Without it, all messages share their windows.',
    optional=True,
    mapping=True,
    examples=("root = this.user", "root = [ this.user, this.src_ip ]"),
)
FILTER_FIELD: Final = Field(
    FILTER,
    "string",
    "A Bloblang query, evaluated for each message before the window: only those for which it is "
    "true are taken. The others are not counted in the window and do not move its clock. When it "
    "fails or gives anything but true or false, the message is left out, and the error is logged.",
    optional=True,
    mapping=True,
    examples=("this.revenue > 100",),
)
HAVING_FIELD: Final = Field(
    HAVING,
    "string",
    "A Bloblang query, evaluated for each window before it is emitted, at its first message (the "
    "first that arrived, unless the buffer has `order: event_time`); windows for which it is not "
    "true are kept back.",
    optional=True,
    mapping=True,
    examples=("batch_size() > 3", 'json("user").from_all().unique().length() >= 25'),
)
LATE_OUTPUT_FIELD: Final = Field(
    LATE_OUTPUT,
    "string",
    "The label of an output resource that gets the messages that are dropped, with the reason in "
    "their metadata. Without it, they are only logged and counted.",
    optional=True,
    refers=Kind.OUTPUT,
    advanced=True,
)
LATENESS_FIELD: Final = duration_field(
    ALLOWED_LATENESS,
    "Time for which a window waits after its end for out-of-order messages, by its clock "
    "(grace period, tolerance). A message whose windows have all closed is late: it is "
    'dropped, logged and counted (reason "late").',
    default="0s",
    examples=("10s", "2h"),
)
MAX_AHEAD_FIELD: Final = duration_field(
    MAX_AHEAD,
    "Drops a message whose event time is further than this ahead of the time of day (reason "
    '"future"): one wrong clock must not close everybody\'s windows.',
    default="",
    advanced=True,
    examples=("1h",),
)
END_FIELD: Final = Field(
    END_OF_INPUT,
    "string",
    "Treatment of open windows when the input ends (a file, a closed pipe): `flush` closes "
    "and emits them; `keep` leaves them in the checkpoint for the next start.",
    default="flush",
    options=("flush", "keep"),
    advanced=True,
)

SOURCE_IDLE_FIELD: Final = duration_field(
    SOURCE_IDLE_TIMEOUT,
    "With `clock_scope: partition` or `input`: how long a partition or input may be silent "
    "before the clock goes on without it, by the time of day; `0s` waits for ever. Time while "
    "the program is down or catches up does not count. Its later messages may be late.",
    default="1m",
    advanced=True,
    examples=("5m",),
)
_CLOCK_FIELDS: Final = (
    Field(
        CLOCK,
        "string",
        "The clock that closes windows. `stream` is the largest event time so far, so that a "
        "replay of old messages gives the same windows. `system` is the time of day.",
        default="stream",
        options=("stream", "system"),
        advanced=True,
    ),
    Field(
        CLOCK_SCOPE,
        "string",
        "Whose event times move the stream clock: `stream`, those of all messages, so that the "
        "furthest ahead closes windows; `partition` or `input`, those of the Kafka partition or "
        "the input that is the furthest behind, as in Flink, so that one that lags loses nothing; "
        "or `key`, only those of the same key, so that a key that is behind loses nothing, and a "
        "key that is silent keeps its windows open until `idle_timeout`. With `partition`, an "
        "input that is no Kafka counts as one.",
        default="stream",
        options=("stream", "partition", "input", "key"),
    ),
    SOURCE_IDLE_FIELD,
    duration_field(
        KEY_RETENTION,
        "Time for which a key's own clock is kept after its last message (`clock_scope: key`).",
        default="7d",
        advanced=True,
    ),
)
_CLOSING_FIELDS: Final = (
    LATENESS_FIELD,
    duration_field(
        IDLE_TIMEOUT,
        "Closes a window that has had no new message for so long by the time of day, though its "
        "clock stands still. Time while the program is down or catches up does not count.",
        default="",
        examples=("5m",),
    ),
    MAX_AHEAD_FIELD,
)
_EMIT_FIELD: Final = Field(
    EMIT,
    "string",
    "When a window is emitted, with all messages that it holds by then: `final`, once, when it "
    "closes; `changes`, after every micro-batch in which it has changed; `each`, after every "
    "message; under both, nothing comes when it closes, unless `emit_also` says so. `forward` "
    "passes messages on at once, with the window's metadata, and keeps none.",
    default="final",
    options=("final", "changes", "each", "forward"),
)
EMIT_ALSO_FIELD: Final = Field(
    EMIT_ALSO,
    "string",
    "What is emitted besides, with all messages that the window holds by then: `on_time`, once, "
    "when the clock passes its end, while it still waits for late messages; `close`, when it "
    "closes, which `emit: changes` and `emit: each` leave out. The metadata `window_emit` says "
    "which: `on_time`; `final`, `idle` or `flush` at the close; and with `on_time`, a change is "
    "`early` before it and `late` after it. `retractions`: ahead of a result, a message `null` "
    "with the metadata `window_retracted: true` and the bounds of an earlier result that no longer "
    "holds, since the session has grown or was merged, or `having` is not true any more.",
    default=(),
    shape="array",
    options=("on_time", "close", "retractions"),
    examples=(("on_time", "close"),),
)
ORDER_FIELD: Final = Field(
    ORDER,
    "string",
    "Order of a window's messages in its batch: `arrival`, as they came; or `event_time`, "
    "sorted by `timestamp_mapping`, those of one time as they came. By it `having` and a "
    "mapping see which message is the first (`this` at `batch_index() == 0`, `.index(0)`) and "
    "which the last (`.index(-1)`). Sorting needs a window's messages, so that `event_time` "
    "keeps them all until the window closes, and nothing is pre-aggregated.",
    default="arrival",
    options=("arrival", "event_time"),
)
RETENTION_FIELD: Final = duration_field(
    RETENTION,
    "Lifetime of results for queries (`streamer query`), by window and key, after the end of "
    "their window. Empty keeps no results. They are stored beside the checkpoint.",
    default="",
    advanced=True,
    examples=("7d",),
)
RETENTION_PACKAGES: Final = (Package("duckdb", RETENTION),)
"""What a buffer with `RETENTION_FIELD` needs."""

STATE_TTL_FIELD: Final = duration_field(
    STATE_TTL,
    "Lifetime of the pipeline's state by key (`lag`, `accumulate`, …) after its last write: "
    "by the ends of windows, without windows by event time, and by the time of day where "
    "there is neither. For ever when empty.",
    default="",
    advanced=True,
    examples=("7d",),
)


def event_time_fields(*own: Field) -> tuple[Field, ...]:
    """Return the fields of a kind of window: its own ones among those that all have."""
    return (
        *(TIMESTAMP_FIELD, KEY_FIELD, *own),
        *_CLOSING_FIELDS,
        *_CLOCK_FIELDS,
        *(FILTER_FIELD, HAVING_FIELD, ORDER_FIELD, _EMIT_FIELD, EMIT_ALSO_FIELD),
        *(LATE_OUTPUT_FIELD, RETENTION_FIELD, END_FIELD),
        STATE_TTL_FIELD,
    )
