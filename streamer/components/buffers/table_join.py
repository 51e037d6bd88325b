"""`table_join`: joins each message of a stream with the row of a table that has its key.

ksqlDB: "a stream-table join … only new records on the stream (left) side trigger the join". Kafka
Streams: `KStream.join(KTable)`; with a history, a versioned table (KIP-889, KIP-914) and
`Joined.withGracePeriod` (KIP-923). In Flink it is a temporal join.
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
    ALLOWED_LATENESS,
    CLOCK,
    CLOCK_SCOPE,
    END_OF_INPUT,
    FILTER_FIELD,
    KEY_MAPPING,
    LATE_OUTPUT_FIELD,
    MAX_AHEAD_FIELD,
    SOURCE_IDLE_FIELD,
    TIMESTAMP_FIELD,
    RightSideFields,
    make_right_side_fields,
)
from streamer.window.settings.window_types import TableJoin

STREAM: Final = "stream"
TABLE: Final = "table"
RIGHT_SIDE: Final = RightSideFields("table_timestamp_mapping", "table_key_mapping")
TYPE: Final = "type"
HISTORY: Final = "history"
TABLE_TTL: Final = "table_ttl"
DELETE_WHEN: Final = "delete_when"


def _check(parsed: ParsedFields) -> FieldProblems:
    yield from find_timestamp_problems(parsed)
    yield from find_key_problems(parsed)
    yield from find_right_side_problems(parsed, RIGHT_SIDE)
    yield from find_lateness_problems(parsed)
    yield from find_non_positive(parsed, TABLE_TTL, "leave it out to keep every row")
    yield from find_non_positive(parsed, HISTORY, "leave it out to keep the newest row alone")
    yield from find_source_clock_problems(parsed)
    yield from find_side_problems(parsed, STREAM, TABLE, "the stream")
    if not parsed[KEY_MAPPING].strip():
        yield KEY_MAPPING, "is empty; expected what a message and its row have in common"
    history, lateness = parsed[HISTORY], parsed[ALLOWED_LATENESS] or 0
    if history is None and lateness > 0:
        text = "has no meaning without history, since a message gets the newest row at once"
        yield ALLOWED_LATENESS, f"{text}; add history, or remove it"
    elif history is not None and 0 < history < lateness:
        text = f"is {format_duration(history)}, but messages wait for {format_duration(lateness)}"
        yield HISTORY, f"{text} (allowed_lateness) and need the rows of their time; make it longer"


SPEC: Final = Spec(
    Kind.BUFFER,
    "table_join",
    "Joins each message of a stream with the row that a table has for its key.",
    description=(
        "The two sides are inputs of a `broker`, identified by their labels; in a list of "
        "`buffers` a side may also be another buffer. Messages of the "
        "table's input are rows: the newest row of a key replaces the one before (upsert). A row "
        "with an empty or null payload, or one for which `delete_when` is true, is a tombstone: it "
        "removes the row of its key. Rows emit nothing. The table is in the checkpoint.\n"
        "\n"
        'Each message of the stream becomes one message, `{"left": …, "right": …}`: the message '
        "and its row. With `type: left`, a message without a row is emitted with null for the "
        "right side; with `inner` it is not emitted. Each is a separate batch.\n"
        "\n"
        "- Without `history`, a message gets the newest row that came before it, whatever the "
        "event times are. In a micro-batch, inputs come in the order of the broker's list: put "
        "the table first.\n"
        "- With `history`, a message gets the row that was valid at its event time. A row is valid "
        "from its event time to that of the next row of its key. Replaced rows are kept until "
        "the clock is `history` past the time of their replacement. A message from before the "
        "history gets the newest row if that row is old enough, or none.\n"
        "- With `history` and `allowed_lateness`, a message waits until the clock is that far "
        "past its time, so that rows may be late. With `clock_scope: input` it waits until both "
        "inputs have passed its time: then the result does not depend on which one is ahead.\n"
        "\n"
        "No message and no row is dropped for being late: a late message is joined at once. A "
        "message or row whose key is null has no partner. Such a row is dropped (reason "
        '"key"). A message with an empty or null payload is passed over.\n'
        "\n"
        "The metadata are those of the message, plus those that only the row has, and "
        "`window_key`, `window_emit` (`event` for a message that was joined when it came, `final` "
        "for one that has waited, `flush` for one that the end of the input released), and the "
        "times of windows, which all are the event time of the message. A payload that is not "
        "JSON becomes text. See [Joins](../../joins.md)."
    ),
    status="beta",
    fields=(
        Field(
            STREAM,
            "string",
            "The label of the input whose messages are the stream (the left side), or of the "
            "buffer whose results are.",
            examples=("orders",),
        ),
        Field(
            TABLE,
            "string",
            "The label of the input whose messages are rows of the table (the right side), or of "
            "the buffer whose results are.",
            examples=("customers",),
        ),
        Field(
            KEY_MAPPING,
            "string",
            "A Bloblang mapping that returns the key, of messages of both sides. Keys are the "
            'same when they are equal as JSON, so 7 is not "7". When it fails or deletes, the '
            'message is dropped, logged and counted (reason "key"). A tombstone of Kafka has no '
            "payload, but its key as metadata.",
            mapping=True,
            examples=("root = this.customer", "root = @kafka_key"),
        ),
        *make_right_side_fields(RIGHT_SIDE, "the table", "root = @kafka_key"),
        Field(
            TYPE,
            "string",
            "Whether messages without a row are emitted: with `left`, with null as the row; with "
            "`inner`, not.",
            default="inner",
            options=("inner", "left"),
        ),
        TIMESTAMP_FIELD,
        Field(
            DELETE_WHEN,
            "string",
            "A Bloblang query: a row for which it is true removes the row of its key, such as a "
            "deletion of a change stream.",
            optional=True,
            mapping=True,
            examples=('this.op == "d"',),
        ),
        duration_field(
            HISTORY,
            "For how long, by event time, replaced rows are kept for messages of their time "
            "(history retention of a versioned table). Empty keeps the newest row alone.",
            default="",
            examples=("1d",),
        ),
        duration_field(
            ALLOWED_LATENESS,
            "With `history`: how long messages wait, by the clock, for rows that are out of order "
            "(grace period).",
            default="0s",
            examples=("10s", "2h"),
        ),
        Field(
            CLOCK_SCOPE,
            "string",
            "Whose event times move the clock: `stream`, those of the stream's input; `input`, "
            "those of the input that is the furthest behind; or `partition`, those of the Kafka "
            "partition that is the furthest behind.",
            default="stream",
            options=("stream", "partition", "input"),
        ),
        SOURCE_IDLE_FIELD,
        duration_field(
            TABLE_TTL,
            "Removes a row that has not come anew for so long, by the time of day (time to live, "
            "TTL). Empty keeps every row until its tombstone.",
            default="",
            examples=("30d",),
        ),
        MAX_AHEAD_FIELD,
        FILTER_FIELD,
        LATE_OUTPUT_FIELD,
        Field(
            END_OF_INPUT,
            "string",
            "Treatment of waiting messages when the inputs end: `flush` joins them with the rows "
            "that there are; `keep` leaves them in the checkpoint. The table always stays there.",
            default="flush",
            options=("flush", "keep"),
            advanced=True,
        ),
    ),
    check=_check,
    examples=(
        Example(
            "Orders with their customers",
            "input:\n"
            "  broker:\n"
            "    inputs:\n"
            "      - label: customers\n"
            "        kafka_franz: { seed_brokers: [ localhost:9092 ], topics: [ customers ] }\n"
            "      - label: orders\n"
            "        kafka_franz: { seed_brokers: [ localhost:9092 ], topics: [ orders ] }\n"
            "buffer:\n"
            "  table_join:\n"
            "    stream: orders\n"
            "    table: customers\n"
            "    key_mapping: root = this.customer.string() | @kafka_key\n"
            "    type: left\n",
            "An order comes out with the row that the compacted topic has for its customer then, "
            "or with null.",
        ),
        Example(
            "Payments with the exchange rate of their time",
            "input:\n"
            "  broker:\n"
            "    inputs:\n"
            "      - label: rates\n"
            "        file: { paths: [ rates.jsonl ] }\n"
            "      - label: payments\n"
            "        file: { paths: [ payments.jsonl ] }\n"
            "buffer:\n"
            "  table_join:\n"
            "    stream: payments\n"
            "    table: rates\n"
            "    key_mapping: root = this.currency\n"
            "    timestamp_mapping: root = this.ts\n"
            "    history: 1d\n"
            "    clock_scope: input\n",
            "A payment waits until both files have passed its time, and gets the rate that was "
            "valid then.",
        ),
    ),
    categories=("Windowing",),
    begin={},
    instead={
        "left": "the stream's input is named by `stream`",
        "right": "the table's input is named by `table`",
        "within": "a row is valid until the next one of its key; use window_join for pairs of "
        "events that are close in time",
        "retention": "table_ttl removes rows, history keeps replaced ones",
        CLOCK: "messages wait for event times alone; leave it out",
    },
)


def build(parsed: ParsedFields, context: BuildContext) -> WindowBuffer:
    """Take the settings, which `SPEC.check` has found to be right."""
    window = TableJoin(
        left=parsed[STREAM],
        right=parsed[TABLE],
        type=parsed[TYPE].lower(),
        history=parsed[HISTORY],
        table_ttl=parsed[TABLE_TTL],
        delete_when=(parsed[DELETE_WHEN] or "").strip(),
    )
    return build_buffer(parsed, window, RIGHT_SIDE)
