"""The fields of a unit test's messages, conditions and steps; those of steps are ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from streamer.core.timestamps import parse_event_time
from streamer.sdk.spec import Field

DROP_REASONS: Final = ("timestamp", "late", "expired", "key", "gap", "future", "incomplete")
"""Why a window buffer drops a message."""


def make_optional_field(name: str, type_: str, description: str, **more: Any) -> Field:
    """Return a field that may be left out; its value is None then."""
    return Field(name, type_, description, optional=True, **more)


def _check_pattern(text: str) -> str | None:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(text, options)
    except re2.error as e:
        reason = e.args[0].decode() if isinstance(e.args[0], bytes) else e
        return f"is not a regular expression (RE2): {reason}"
    return None


def _check_clock(text: str) -> str | None:
    """Return what is wrong with the time of a scripted clock, or None."""
    try:
        parse_event_time(text)
    except ValueError as e:
        return f"is no time: {e}; expected one such as 2026-01-01T00:00:00Z"
    return None


def _check_reasons(dropped: dict[str, int]) -> str | None:
    for reason, count in dropped.items():
        if reason not in DROP_REASONS:
            return f"has the unknown reason {reason!r}; expected one of {', '.join(DROP_REASONS)}"
        if count is not None and count < 0:
            return f"has {count} for {reason}; expected 0 or more"
    return None


MESSAGE_FIELDS: Final = (
    make_optional_field("content", "string", "The message's text."),
    make_optional_field(
        "json_content",
        "unknown",
        "A value; the message is its JSON, and `content` is ignored.",
        examples=({"foo": "foo value", "bar": ["element1", 10]},),
    ),
    make_optional_field(
        "file_content",
        "string",
        "A file with the message's text, relative to the test's file; it wins over the others.",
        examples=("./foo/bar.txt",),
    ),
    make_optional_field(
        "metadata", "unknown", "The message's metadata, values of any type.", shape="map"
    ),
)

SENT_FIELDS: Final = (
    *MESSAGE_FIELDS,
    make_optional_field(
        "failed", "string", "Marks the message as failed upstream, with this text."
    ),
    Field(
        "partition",
        "int",
        "The source's partition that the message comes from.",
        default=0,
        check=lambda value: None if value >= 0 else f"is {value}; expected 0 or more",
    ),
    Field(
        "input",
        "string",
        "The label of the input that the message comes from; a join of two inputs needs it.",
        default="",
        examples=("orders",),
    ),
)

CONDITION_FIELDS: Final = (
    make_optional_field(
        "bloblang",
        "string",
        "A mapping on the message whose result must be true.",
        mapping=True,
        examples=("this.age > 10 && @foo.length() > 0",),
    ),
    make_optional_field("content_equals", "string", "The text that the message must be."),
    make_optional_field(
        "content_matches",
        "string",
        "A regular expression (RE2) that must be found in the message's text.",
        check=_check_pattern,
        examples=("^foo [a-z]+ bar$",),
    ),
    make_optional_field(
        "metadata_equals",
        "unknown",
        "Metadata that the message must have; it may have more.",
        shape="map",
        examples=({"example_key": "example metadata value"},),
    ),
    make_optional_field(
        "file_equals",
        "string",
        "A file, relative to the test's, with the text that the message must be.",
        examples=("./foo/bar.txt",),
    ),
    make_optional_field(
        "file_json_equals",
        "string",
        "A file with the JSON value that the message must be, however it is written.",
        examples=("./foo/bar.json",),
    ),
    make_optional_field(
        "json_equals",
        "unknown",
        "The value that the message must be, however it is written; a text is read as JSON.",
        examples=({"key": "value"},),
    ),
    make_optional_field(
        "json_contains",
        "unknown",
        "A value that the message must hold: objects may have more fields, lists more items at "
        "their end. A text is read as JSON.",
        examples=({"key": "value"},),
    ),
    make_optional_field(
        "file_json_contains",
        "string",
        "A file with a JSON value that the message must hold.",
        examples=("./foo/bar.json",),
    ),
)


OUTPUT_BATCHES: Final = make_optional_field(
    "output_batches",
    "object",
    "What must hold for each message of each batch that comes out.",
    shape="2darray",
    children=CONDITION_FIELDS,
)

STEP_FIELDS: Final = (
    make_optional_field(
        "advance",
        "string",
        "Moves the clock on by a duration, then runs a micro-batch.",
        duration=True,
        check=lambda value: None if value >= 0 else "is negative; set the clock back with `clock`",
        examples=("10s",),
    ),
    make_optional_field(
        "clock",
        "string",
        "Sets the clock, then runs a micro-batch.",
        check=_check_clock,
        examples=("2026-01-01T00:00:10Z",),
    ),
    make_optional_field(
        "send",
        "object",
        "Messages of a micro-batch, in order of arrival, as the input and its processors give "
        "them.",
        shape="array",
        children=SENT_FIELDS,
    ),
    make_optional_field(
        "end_of_input", "bool", "The input ends with the micro-batch of this step."
    ),
    make_optional_field(
        "restart",
        "bool",
        "Stops the program and starts it again with the state that it left; no micro-batch runs.",
    ),
    replace(
        OUTPUT_BATCHES,
        description="What must hold for the batches that came out since the last step with a list.",
    ),
)

STREAM_FIELDS: Final = (
    make_optional_field(
        "clock",
        "string",
        "Where the scripted clock starts; the first step is the first micro-batch.",
        check=_check_clock,
        examples=("2026-01-01T00:00:00Z",),
    ),
    make_optional_field(
        "buffer",
        "string",
        "Of several buffers, the label of the one whose results `output_batches` lists, also where "
        "only other buffers take them. Without it they list what the outputs get: of the first "
        "buffer of the config first, in each step.",
        examples=("hourly",),
    ),
    make_optional_field(
        "steps",
        "object",
        "What happens to the stream, one micro-batch for each step.",
        shape="array",
        children=STEP_FIELDS,
    ),
    make_optional_field(
        "late_output",
        "object",
        "What must hold for each message that `late_output` gets in the whole test.",
        shape="array",
        children=CONDITION_FIELDS,
    ),
    make_optional_field(
        "dropped",
        "int",
        "How many messages are dropped in the whole test, by reason; those left out are 0.",
        shape="map",
        check=_check_reasons,
        examples=({"late": 1},),
    ),
)
"""The fields of a case with `target: stream`."""
