"""`state_window`: windows from a message for which a condition holds to another such one.

eKuiper's STATEWINDOW: it "does not focus on time, but only on the impact of each piece of data on
the window state". TDengine's EVENT_WINDOW is alike.
"""

from __future__ import annotations

from typing import Final

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
    BEGIN_WHEN,
    EMIT_WHEN,
    END_OF_INPUT,
    FILTER_FIELD,
    HAVING_FIELD,
    KEY_FIELD,
    LATE_OUTPUT_FIELD,
    STATE_TTL_FIELD,
)
from streamer.window.settings.window_types import State


def _check(parsed: ParsedFields) -> FieldProblems:
    yield from find_key_problems(parsed)
    yield from find_state_ttl_problems(parsed)
    for name in (BEGIN_WHEN, EMIT_WHEN):
        yield from find_repeat_problems(parsed, name, "condition")
    if not (parsed[BEGIN_WHEN] or "").strip():
        text = "is empty, but a window begins with a message for which it is true"
        yield BEGIN_WHEN, f"{text}; write a query such as this.level > 1"


SPEC: Final = Spec(
    Kind.BUFFER,
    "state_window",
    "Divides a stream into windows from a message with one condition to a message with another.",
    description=(
        "A window of a key begins with a message for which `begin_when` is true, and ends with the "
        "next one after it for which `emit_when` is true; both belong to it. Without `emit_when`, "
        "a message for which `begin_when` is true ends the window before it and begins the next "
        "one, to which it belongs. The messages before the first window and between windows are "
        'dropped and counted (reason "incomplete"), and go to `late_output`. Times have no '
        "meaning: messages are taken in order of arrival.\n"
        "\n"
        "Messages get the metadata `window_key`, `window_emit` (`event`, or `flush` at the end of "
        "the input) and `window_count`, the number of messages in the batch. A window that never "
        "ends keeps its messages: bound it with a condition that some message fulfills."
    ),
    status="beta",
    fields=(
        KEY_FIELD,
        Field(
            BEGIN_WHEN,
            "string",
            "A Bloblang query: a message for which it is true begins a window, if none is open. "
            "When it fails or gives anything but true or false, it does not hold, and that is "
            "logged.",
            mapping=True,
            examples=("this.level > 1", 'this.event == "login"'),
        ),
        Field(
            EMIT_WHEN,
            "string",
            "A Bloblang query: a message for which it is true ends the open window, which is "
            "emitted at once. Left out, the next message with `begin_when` does.",
            optional=True,
            mapping=True,
            examples=("this.level > 5", 'this.event == "logout"'),
        ),
        FILTER_FIELD,
        HAVING_FIELD,
        LATE_OUTPUT_FIELD,
        Field(
            END_OF_INPUT,
            "string",
            "Treatment of open windows when the input ends (a file, a closed pipe): `drop` drops "
            "their messages; `flush` emits them; `keep` leaves them in the checkpoint for the "
            "next start.",
            default="drop",
            options=("drop", "flush", "keep"),
            advanced=True,
        ),
        STATE_TTL_FIELD,
    ),
    check=_check,
    examples=(
        Example(
            "From login to logout",
            "buffer:\n"
            "  state_window:\n"
            "    key_mapping: root = this.user\n"
            '    begin_when: this.event == "login"\n'
            '    emit_when: this.event == "logout"\n'
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: |\n"
            "        root = if batch_index() == 0 {\n"
            '          { "user": this.user, "events": batch_size() }\n'
            "        } else { deleted() }\n",
            "How many events each user had between a login and the next logout.",
        ),
    ),
    categories=("Windowing",),
)


def build(parsed: ParsedFields, context: BuildContext) -> WindowBuffer:
    """Take the settings, which `SPEC.check` has found to be right."""
    is_single = not (parsed[EMIT_WHEN] or "").strip()
    return build_buffer(parsed, State(is_single, parsed[END_OF_INPUT].lower()))
