"""`session_window`: windows of activity, which a time without messages ends.

ksqlDB: "a period of activity separated by a specified gap of inactivity"; its start and end "are
both inclusive". eKuiper: "the session window will keep extending until maximum duration is
reached. The maximum duration checking intervals are set to be the same size". Tenzir counts its
longest duration from the session's start, and has a largest number of messages (`size`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamer.core.durations import format_duration
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
    encode_keys,
    find_event_time_problems,
    find_repeat_problems,
)
from streamer.sdk.window_buffer.fields import (
    CLOCK_SCOPE,
    GAP_MAPPING,
    KEY_MAPPING,
    RETENTION_PACKAGES,
    event_time_fields,
)
from streamer.window.settings.window_types import DurationOrigin, Session

GAP: Final = "gap"
MAX_DURATION: Final = "max_duration"
MAX_DURATION_ORIGIN: Final = "max_duration_origin"
MAX_COUNT: Final = "max_count"
EXPECTED_KEYS: Final = "expected_keys"


def _check(parsed: ParsedFields) -> FieldProblems:
    yield from find_event_time_problems(parsed)
    yield from find_repeat_problems(parsed, GAP_MAPPING, "gap")
    if parsed[EXPECTED_KEYS]:
        if not (parsed[KEY_MAPPING] or "").strip():
            yield EXPECTED_KEYS, "are listed, but messages have no keys; add key_mapping"
        if parsed[CLOCK_SCOPE].lower() == "key":
            text = "is key, by which the clock of a key that sends nothing never moves"
            yield CLOCK_SCOPE, f"{text}; leave it out beside {EXPECTED_KEYS}"
    yield from _find_limit_problems(parsed)
    gap, max_duration = parsed[GAP], parsed[MAX_DURATION]
    from_start = parsed[MAX_DURATION_ORIGIN].lower() == "start"
    if gap is None or gap <= 0:
        value_text = "empty" if gap is None else format_duration(gap)
        yield GAP, f"is {value_text}, but a session needs a gap above 0s that ends it, such as 30s"
    elif max_duration is not None and max_duration < gap and not from_start:
        text = f"is {format_duration(max_duration)}, but it must not be shorter than the gap"
        yield MAX_DURATION, f"{text}, {format_duration(gap)}"


def _find_limit_problems(parsed: ParsedFields) -> FieldProblems:
    """Give what is wrong with the largest duration and number of messages."""
    duration = parsed[MAX_DURATION]
    if parsed[MAX_DURATION_ORIGIN].lower() == "start":
        if duration is None:
            text = f"is start, but there is no {MAX_DURATION} to count from there"
            yield MAX_DURATION_ORIGIN, f"{text}; add one"
        elif duration <= 0:
            text = f"is {format_duration(duration)}, but a session lasts longer than 0s"
            yield MAX_DURATION, f"{text}; set it to a duration such as 10m"
    if parsed[MAX_COUNT] is not None and (parsed[GAP_MAPPING] or "").strip():
        text = f"is not possible with {GAP_MAPPING}, by which sessions may lie among each other"
        yield MAX_COUNT, f"{text}; leave out one of them"


def _find_count_problem(value: int) -> str | None:
    return None if value >= 1 else f"is {value}; expected a number of messages of 1 or more"


SPEC: Final = Spec(
    Kind.BUFFER,
    "session_window",
    "Divides a stream into sessions: periods of activity, each ended by a period without messages.",
    description=(
        "A message that is within `gap` of a session of its key, before its start or after "
        "its end, belongs to it and extends it; a message near two sessions merges them. "
        "Otherwise it starts a new session. A session starts and ends with its first and last "
        "message, both included, and is emitted when its clock has passed its end by more "
        "than `gap` and `allowed_lateness`. Sessions of different keys are independent.\n"
        "\n"
        "With `gap_mapping`, each message has its own gap (dynamic gap): a message at t with "
        "the gap g extends its session to t + g, unless the session already ends later. "
        "Messages whose intervals from t to t + g overlap are in one session, in any order of "
        "arrival.\n"
        "\n"
        "With `max_count`, the message that makes a session full closes it at once "
        "(`window_emit` `count`), and the next one starts another session. Sessions that together "
        "would be larger do not merge: the earlier one closes instead."
    ),
    status="beta",
    fields=event_time_fields(
        replace(
            duration_field(
                GAP,
                "Maximum distance of two messages of one session (inactivity gap, timeout).",
                examples=("60s", "30m"),
            ),
            per_message=GAP_MAPPING,
        ),
        Field(
            GAP_MAPPING,
            "string",
            "A Bloblang mapping that returns the gap of a message: a duration as text (`30s`), or "
            "a number of seconds; null for `gap`. When it fails or returns anything else, or a "
            "gap that is not longer than 0s, the message is dropped, logged and counted (reason "
            '"gap"). Without it, all messages have `gap`.',
            optional=True,
            mapping=True,
            examples=("root = this.timeout", 'root = if this.device == "slow" { "10m" }'),
        ),
        duration_field(
            MAX_DURATION,
            "Cuts a session that does not end by itself: at the first multiple of this (since "
            "1970) that is later than its start by more than this, or as `max_duration_origin` "
            "says. Not shorter than `gap`; empty for sessions of any length.",
            default="",
            examples=("10m",),
        ),
        Field(
            MAX_DURATION_ORIGIN,
            "string",
            "The time from which `max_duration` counts. With `epoch`, all sessions are cut at its "
            "multiples since 1970. With `start`, each is cut that long after its own start, the "
            "message at that instant included; it may then be shorter than `gap`.",
            default="epoch",
            options=("epoch", "start"),
            advanced=True,
        ),
        Field(
            MAX_COUNT,
            "int",
            "The largest number of messages of a session, which closes with the last of them. Left "
            "out, a session has any number. Not possible with `gap_mapping`.",
            optional=True,
            check=_find_count_problem,
            examples=(1000,),
        ),
        Field(
            EXPECTED_KEYS,
            "unknown",
            "Keys that are to send: of one that has sent nothing within `gap` of the first message "
            "of the stream (of its start with `clock: system`), a session without messages comes "
            "out, once, with `window_emit` `empty`. Not when the input ends before that.",
            default=[],
            shape="array",
            advanced=True,
            examples=(["pump-1", "pump-2"],),
        ),
    ),
    check=_check,
    examples=(
        Example(
            "Count page views by session",
            "buffer:\n"
            "  session_window:\n"
            "    timestamp_mapping: root = this.viewed_at\n"
            "    key_mapping: root = this.regionid\n"
            "    gap: 60s\n"
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        root = if batch_index() == 0 {\n"
            "          {\n"
            '            "regionid": meta("window_key"),\n'
            '            "start": meta("window_start_timestamp"),\n'
            '            "end": meta("window_end_timestamp"),\n'
            '            "views": batch_size(),\n'
            "          }\n"
            "        } else { deleted() }\n",
            "A region's page views, until there is none for a minute.",
        ),
    ),
    categories=("Windowing",),
    requires=RETENTION_PACKAGES,
)


def build(parsed: ParsedFields, context: BuildContext) -> WindowBuffer:
    """Take the settings, which `SPEC.check` has found to be right."""
    expected = encode_keys(parsed[EXPECTED_KEYS])
    is_by_message = bool((parsed[GAP_MAPPING] or "").strip())
    origin: DurationOrigin = "start" if parsed[MAX_DURATION_ORIGIN].lower() == "start" else "epoch"
    kind = Session(
        *(parsed[GAP], parsed[MAX_DURATION], is_by_message, expected),
        max_count=parsed[MAX_COUNT],
        max_duration_origin=origin,
    )
    return build_buffer(parsed, kind)
