"""`session_window`: windows of activity, which a time without messages ends.

ksqlDB: "a period of activity separated by a specified gap of inactivity"; its start and end "are
both inclusive". eKuiper: "the session window will keep extending until maximum duration is
reached. The maximum duration checking intervals are set to be the same size".
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
from streamer.window.settings.window_types import Session

GAP: Final = "gap"
MAX_DURATION: Final = "max_duration"
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
    gap, max_duration = parsed[GAP], parsed[MAX_DURATION]
    if gap is None or gap <= 0:
        value_text = "empty" if gap is None else format_duration(gap)
        yield GAP, f"is {value_text}, but a session needs a gap above 0s that ends it, such as 30s"
    elif max_duration is not None and max_duration < gap:
        text = f"is {format_duration(max_duration)}, but it must not be shorter than the gap"
        yield MAX_DURATION, f"{text}, {format_duration(gap)}"


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
        "arrival."
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
            "1970) that is later than its start by more than this. Not shorter than `gap`; empty "
            "for sessions of any length.",
            default="",
            examples=("10m",),
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
    return build_buffer(parsed, Session(parsed[GAP], parsed[MAX_DURATION], is_by_message, expected))
