"""`count_window`: windows of a number of messages, without any time.

eKuiper: "the count window does not concern time, it only concern about events count." Its
COUNTWINDOW(count, interval) is `count` and `every`. Tenzir's windows of events are the same with
`align: start` and `end_of_input: flush`, its trailing ones with `min_count: 1`. pandas calls the
fewest messages `min_periods`.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.window_buffer.event_time import (
    FieldProblems,
    WindowBuffer,
    build_buffer,
    find_key_problems,
    find_repeat_problems,
    find_state_ttl_problems,
)
from streamer.sdk.window_buffer.fields import (
    EMIT_WHEN,
    END_OF_INPUT,
    EVERY,
    FILTER_FIELD,
    HAVING_FIELD,
    KEY_FIELD,
    LATE_OUTPUT_FIELD,
    STATE_TTL_FIELD,
)
from streamer.window.settings.window_types import Count

COUNT: Final = "count"
MIN_COUNT: Final = "min_count"
ALIGN: Final = "align"


def _check(parsed: ParsedFields) -> FieldProblems:
    yield from find_key_problems(parsed)
    yield from find_state_ttl_problems(parsed)
    count, every, least = parsed[COUNT], parsed[EVERY], parsed[MIN_COUNT]
    starts = parsed[ALIGN].lower() == "start"
    if every is not None and every > count and starts:
        text = f"is {every}, but with align: start it must not be more than count, {count}"
        yield EVERY, f"{text}: messages in between would be in no window"
    if least is not None and least > count:
        yield MIN_COUNT, f"is {least}, but a window has at most {count} messages (count)"
    yield from find_repeat_problems(parsed, EMIT_WHEN, "condition")
    if (parsed[EMIT_WHEN] or "").strip() and starts:
        text = "has no meaning with align: start, by which windows begin and not end"
        yield EMIT_WHEN, f"{text}; remove it, or align"
    if least is not None and starts:
        text = "has no meaning with align: start, whose first window begins with the first message"
        yield MIN_COUNT, f"{text}; remove it, or align"


def _find_count_problem(value: int) -> str | None:
    return None if value >= 1 else f"is {value}; expected a number of messages of 1 or more"


SPEC: Final = Spec(
    Kind.BUFFER,
    "count_window",
    "Divides a stream into windows of a fixed number of messages.",
    description=(
        "Without `every`, each `count` messages of a key are one batch. With `every`, the "
        "latest `count` messages are emitted after each `every` messages, once there are that "
        "many, or `min_count`. With `align: start`, a window of `count` messages begins with the "
        "first message and after each `every` messages. Messages get the metadata `window_key`, "
        "`window_emit` (`count`, or `flush` at the end of the input), `window_count`, the number "
        "of messages in the batch, `window_start_offset` and `window_end_offset`. The offsets "
        "count the messages of a key from 0: that of the first message, and the one behind the "
        "last message of the full window. Messages that are in no batch are dropped, logged and "
        'counted (reason "incomplete"). These are the first messages of a key if the first batch '
        "comes after more than `count` messages, those between windows if `every` is more than "
        "`count`, and, with `end_of_input: drop`, the rest at the end of a bounded input."
    ),
    status="beta",
    fields=(
        KEY_FIELD,
        Field(
            COUNT,
            "int",
            "The number of messages in a window.",
            check=_find_count_problem,
            examples=(5,),
        ),
        Field(
            EVERY,
            "int",
            "After how many messages the next window ends, or begins (`align`). Left out, windows "
            "follow one another.",
            optional=True,
            check=_find_count_problem,
            examples=(1, 2),
        ),
        Field(
            MIN_COUNT,
            "int",
            "The fewest messages of a key for a window: the first windows are emitted though they "
            "have less than `count`. Left out, it is `count`.",
            optional=True,
            check=_find_count_problem,
            examples=(1,),
        ),
        Field(
            ALIGN,
            "string",
            "The bound of windows that `every` counts: with `end`, one ends after each `every` "
            "messages; with `start`, one begins with the first message and after each `every`.",
            default="end",
            options=("end", "start"),
            advanced=True,
        ),
        Field(
            EMIT_WHEN,
            "string",
            "A Bloblang query: only a message for which it is true ends a window, the first such "
            "message once `every` messages have come after the last window. All others are still "
            "in windows. When it fails or gives anything but true or false, it does not hold, and "
            "that is logged.",
            optional=True,
            mapping=True,
            examples=('this.status == "failure"',),
        ),
        FILTER_FIELD,
        HAVING_FIELD,
        LATE_OUTPUT_FIELD,
        Field(
            END_OF_INPUT,
            "string",
            "Treatment of messages that wait for the next window when the input ends (a file, a "
            "closed pipe): `drop` drops those that were in no window; `flush` emits the window "
            "that they have begun, with `align: start` all such windows; `keep` leaves them in "
            "the checkpoint for the next start.",
            default="drop",
            options=("drop", "flush", "keep"),
            advanced=True,
        ),
        STATE_TTL_FIELD,
    ),
    check=_check,
    examples=(
        Example(
            "The mean of the last five readings",
            "buffer:\n"
            "  count_window:\n"
            "    key_mapping: root = this.sensor\n"
            "    count: 5\n"
            "    every: 1\n"
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        root = if batch_index() == 0 {\n"
            "          {\n"
            '            "sensor": this.sensor,\n'
            '            "mean": json("celsius").from_all().sum() / batch_size(),\n'
            "          }\n"
            "        } else { deleted() }\n",
            "From the fifth reading of a sensor on, each one gives a mean.",
        ),
    ),
    categories=("Windowing",),
)


def build(parsed: ParsedFields, context: BuildContext) -> WindowBuffer:
    """Take the settings, which `SPEC.check` has found to be right."""
    count = parsed[COUNT]
    settings: dict[str, Any] = {name: parsed[name].lower() for name in (ALIGN, END_OF_INPUT)}
    settings["conditional"] = bool((parsed[EMIT_WHEN] or "").strip())
    return build_buffer(
        parsed, Count(count, parsed[EVERY] or count, parsed[MIN_COUNT] or 0, **settings)
    )
