"""`count_window`: windows of a number of messages, without any time.

eKuiper: "the count window does not concern time, it only concern about events count." Its
COUNTWINDOW(count, interval) is `count` and `every`.
"""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.window_buffer.event_time import (
    FieldProblems,
    WindowBuffer,
    build_buffer,
    find_key_problems,
    find_state_ttl_problems,
)
from streamer.sdk.window_buffer.fields import (
    EVERY,
    FILTER_FIELD,
    HAVING_FIELD,
    KEY_FIELD,
    LATE_OUTPUT_FIELD,
    STATE_TTL_FIELD,
)
from streamer.window.settings.window_types import Count

COUNT: Final = "count"


def _check(parsed: ParsedFields) -> FieldProblems:
    yield from find_key_problems(parsed)
    yield from find_state_ttl_problems(parsed)
    count, every = parsed[COUNT], parsed[EVERY]
    if every is not None and every > count:
        text = f"is {every}, but it must not be more than count, {count}"
        yield EVERY, f"{text}: messages in between would be in no window"


def _find_count_problem(value: int) -> str | None:
    return None if value >= 1 else f"is {value}; expected a number of messages of 1 or more"


SPEC: Final = Spec(
    Kind.BUFFER,
    "count_window",
    "Divides a stream into windows of a fixed number of messages.",
    description=(
        "Without `every`, each `count` messages of a key are one batch. With `every`, the "
        "latest `count` messages are emitted after each `every` messages, once there are that "
        "many. Messages get the metadata `window_key`, `window_emit` (`count`) and "
        "`window_count`, the number of messages in the batch. Messages that are in no batch "
        'are dropped, logged and counted (reason "incomplete"). These are the first messages '
        "of a key if the first batch comes after more than `count` messages, and the rest at "
        "the end of a bounded input."
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
            "After how many messages the latest `count` are emitted; not more than `count`. "
            "Left out, windows follow one another.",
            optional=True,
            check=_find_count_problem,
            examples=(1, 2),
        ),
        FILTER_FIELD,
        HAVING_FIELD,
        LATE_OUTPUT_FIELD,
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
    return build_buffer(parsed, Count(count, parsed[EVERY] or count))
