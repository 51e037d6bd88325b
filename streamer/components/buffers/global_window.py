"""`global_window`: one window for each key that never ends: running totals, the latest of each.

Flink: "A global windows assigner assigns all elements with the same key to the same single global
window"; in SQL it is a GROUP BY without a window. In ksqlDB it is a table: an aggregation, or
LATEST_BY_OFFSET.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from streamer.core.durations import format_duration
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field
from streamer.sdk.window_buffer.event_time import (
    FieldProblems,
    WindowBuffer,
    build_buffer,
    find_key_problems,
    find_timestamp_problems,
)
from streamer.sdk.window_buffer.fields import (
    EMIT,
    FILTER_FIELD,
    IDLE_TIMEOUT,
    KEY_FIELD,
    ORDER,
    TIMESTAMP_FIELD,
)
from streamer.window.settings.window_types import Global

LATEST_BY: Final = "latest_by"
DELETE_WHEN: Final = "delete_when"


def _check(parsed: ParsedFields) -> FieldProblems:
    yield from find_timestamp_problems(parsed)
    yield from find_key_problems(parsed)
    timeout = parsed[IDLE_TIMEOUT]
    if timeout is not None and timeout <= 0:
        text = f"is {format_duration(timeout)}, but it must be longer than 0s"
        yield IDLE_TIMEOUT, f"{text}; leave it out to keep every key"
    yield from _find_latest_problems(parsed)


def _find_latest_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what has no meaning, or cannot be, for the way in which messages are kept."""
    by_time = parsed[ORDER].lower() == "event_time"
    if not (parsed[LATEST_BY] or "").strip():
        if (parsed[DELETE_WHEN] or "").strip():
            text = "has no meaning without latest_by, since no message is kept"
            yield DELETE_WHEN, f"{text}; add latest_by, or count with -1 what is taken back"
        if by_time:
            text = "is event_time, but without latest_by no message is kept that could be sorted"
            yield ORDER, f"{text}; leave it out"
    elif by_time and (parsed[DELETE_WHEN] or "").strip():
        text = "is event_time, but of what delete_when has taken out nothing is known any more, and"
        text += " an older message that comes later would bring it back"
        yield ORDER, f"{text}; use order: arrival, which keeps the order of a partition"


SPEC: Final = Spec(
    Kind.BUFFER,
    "global_window",
    "Keeps one window without end for each key: running totals, and the latest of each.",
    description=(
        "A window opens with the first message of its key and never closes. After each change "
        "it is emitted as one batch, from which the pipeline's mapping makes the current "
        "result. The checkpoint stores one of two things:\n"
        "\n"
        "- Without `latest_by`, the aggregates of the mapping (such as `batch_size()` and "
        '`json("n").from_all().sum()`). No message is stored, so the mapping must be one that '
        "can be [pre-aggregated](../../aggregates.md#pre-aggregation). `this` is the latest "
        "message.\n"
        "- With `latest_by`, the latest message of each id. The batch has only these, so that "
        "an updated id does not count twice. `delete_when` removes an id.\n"
        "\n"
        "Messages get the metadata `window_key`, `window_max_timestamp` and `window_emit`: "
        "`changes`, `each`, or `deleted` for the message that has removed the last id of its "
        "key, which is then a batch alone. A window without end has no bounds, and no message "
        "is late. When the input ends, the windows stay in the checkpoint and continue at the "
        "next start."
    ),
    status="beta",
    fields=(
        TIMESTAMP_FIELD,
        KEY_FIELD,
        Field(
            LATEST_BY,
            "string",
            "A Bloblang mapping that returns an id, such as a primary key: of each id the window "
            "holds the latest message only (upsert). When it fails or deletes, the message is "
            'dropped, logged and counted (reason "key").',
            optional=True,
            mapping=True,
            examples=("root = this.id", "root = this.country"),
        ),
        Field(
            DELETE_WHEN,
            "string",
            "A Bloblang query: a message for which it is true takes its id (`latest_by`) out of "
            "the window, such as a deletion of a change stream.",
            optional=True,
            mapping=True,
            examples=('this.op == "d"',),
        ),
        Field(
            EMIT,
            "string",
            "When a window is emitted: `changes`, after every micro-batch in which it has changed; "
            "`each`, after every message.",
            default="changes",
            options=("changes", "each"),
        ),
        duration_field(
            IDLE_TIMEOUT,
            "Forgets a key that has had no message for so long by the time of day (time to "
            "live, TTL); nothing is emitted then, and its next message starts again. Time "
            "while the program is down or catches up does not count. Empty keeps every key "
            "for ever.",
            default="",
            examples=("1d", "30d"),
        ),
        FILTER_FIELD,
        Field(
            ORDER,
            "string",
            "Which message of an id is the latest, and in which order those of a batch stand: "
            "`arrival`, or `event_time` (`timestamp_mapping`), so that an older one that comes "
            "later changes nothing.",
            default="arrival",
            options=("arrival", "event_time"),
        ),
    ),
    check=_check,
    begin={"latest_by": "root = this.id"},
    examples=(
        Example(
            "Revenue so far",
            "buffer:\n"
            "  global_window:\n"
            "    key_mapping: root = this.product\n"
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        root = if batch_index() == 0 {\n"
            "          {\n"
            '            "product": this.product,\n'
            '            "revenue": json("price").from_all().sum(),\n'
            "          }\n"
            "        } else { deleted() }\n",
            "With each order, what its product has brought in since the stream began.",
        ),
        Example(
            "The largest three of the latest values",
            "buffer:\n"
            "  global_window:\n"
            "    key_mapping: root = this.continent\n"
            "    latest_by: root = this.country\n"
            "    delete_when: this.deleted == true\n"
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        root = if batch_index() == 0 {\n"
            "          {\n"
            '            "continent": @window_key,\n'
            '            "top": json().from_all().top_k(3, c -> c.size),\n'
            "          }\n"
            "        } else { deleted() }\n",
            "A country that comes again replaces what it was before.",
        ),
    ),
    categories=("Windowing",),
)


def build(parsed: ParsedFields, context: BuildContext) -> WindowBuffer:
    """Take the settings, which `SPEC.check` has found to be right."""
    kind = Global((parsed[LATEST_BY] or "").strip(), (parsed[DELETE_WHEN] or "").strip())
    buffer = build_buffer(parsed, kind)
    assert buffer.time is not None
    return replace(buffer, time=replace(buffer.time, end_of_input="keep"))
