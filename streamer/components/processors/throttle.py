"""`throttle`: lets so many messages of a key pass in a time, by the state of the key.

Vector's `throttle` and Elastic's "summary of alerts" have this name and this use: an alarm at once,
then none for an hour. Time is the event time of the messages, so that a replay decides the same.
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang import compile_interpolation
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.keyed_state import MISSING, KeyedState
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.stateful import KEY, KEY_FIELD, StatefulProcessor
from streamer.sdk.spec import (
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)

MAX: Final = "max"
PERIOD: Final = "period"
OVERFLOW: Final = "overflow"

SUPPRESSED: Final = "throttle_suppressed"
EXCEEDED: Final = "throttle_exceeded"


def _find_max_problem(value: str) -> str | None:
    if "${!" in value or (value.isdecimal() and int(value) > 0):
        return None
    return f"is {value!r}; expected a number of messages of 1 or more"


def _find_period_problem(value: int | None) -> str | None:
    return None if value is not None and value > 0 else "must be longer than 0s, such as 1h"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "throttle",
    "Passes a number of messages per key and period, and drops or marks the others.",
    description=(
        "The first message of a key passes and begins a period. In it, `max` messages pass, and "
        "the others are suppressed. The first message after the period passes and begins the next "
        f"one. Passing messages have the metadata `{SUPPRESSED}`, the number of suppressed "
        "messages of their key since the previous one.\n\n"
        "It needs a key: the buffer `keyed_state` with a `key_mapping`, or a window. Time is the "
        "buffer's event time, and never runs backwards. What it knows is in the checkpoint: a "
        "restart or a replay decides the same. See [State by key](../../state.md). To slow a "
        "stream down instead, use `rate_limit`."
    ),
    status="beta",
    fields=(
        duration_field(
            PERIOD,
            "Length of a period, from its first message.",
            check=_find_period_problem,
            examples=("1h", "1s"),
        ),
        Field(
            MAX,
            "string",
            "Number of messages that pass in a period; an interpolation may set it for each "
            "message.",
            default="1",
            interpolated=True,
            check=_find_max_problem,
            examples=("1", "${! if this.vip { 10 } else { 2 } }"),
        ),
        KEY_FIELD,
        Field(
            OVERFLOW,
            "string",
            f"Treatment of the others: `drop`; or `mark`, which sets the metadata `{EXCEEDED}` to "
            "`true`, so that a `switch` can send them elsewhere.",
            default="drop",
            options=("drop", "mark"),
        ),
    ),
    examples=(
        Example(
            "An alarm at once, then none for an hour",
            "buffer:\n"
            "  keyed_state:\n"
            "    key_mapping: root = this.account\n"
            "    timestamp_mapping: root = this.at\n"
            "pipeline:\n"
            "  processors:\n"
            "    - mapping: root = if this.amount < 10000 { deleted() }\n"
            "    - label: alarms\n"
            "      throttle:\n"
            "        period: 1h\n"
            "    - mapping: |\n"
            "        root = this\n"
            "        root.suppressed = @throttle_suppressed\n",
            "Each account has its own alarms. `suppressed` counts the suppressed ones before it.",
        ),
        Example(
            "Another limit for each application, and the rest into a file",
            "buffer:\n"
            "  keyed_state:\n"
            "    key_mapping: root = this.app\n"
            "    timestamp_mapping: root = this.at\n"
            "pipeline:\n"
            "  processors:\n"
            "    - throttle:\n"
            "        period: 1s\n"
            "        max: ${! if this.vip { 100 } else { 10 } }\n"
            "        overflow: mark\n"
            "output:\n"
            "  switch:\n"
            "    cases:\n"
            "      - check: '@throttle_exceeded == true'\n"
            "        output:\n"
            "          file:\n"
            "            path: excess.jsonl\n"
            "      - output:\n"
            "          stdout: {}\n",
        ),
    ),
    categories=("Utility",),
)


class ThrottleProcessor(StatefulProcessor):
    """Counts the messages of a key in each of its periods."""

    def __init__(self, parsed: ParsedFields, origin: ComponentRef) -> None:
        """Take the fields, which `SPEC` has found to be right."""
        super().__init__(parsed[KEY], origin)
        self._limit = compile_interpolation(parsed[MAX])
        self._period: int = parsed[PERIOD]
        self._marks = parsed[OVERFLOW].lower() == "mark"
        self._name = f"{origin.state_scope}/throttle"
        self._suppressed_name = f"{self._name} suppressed"

    def decide(
        self, batch: Batch, index: int, ex: Execution, state: KeyedState, part: str
    ) -> Message | None:
        """Return a message that passes, or is marked; None for one that is dropped."""
        message = batch[index]
        most = self._read_limit(batch, index, ex)
        kept = state.get(self._name, part)
        begin, passed = (state.clock, 0) if kept is MISSING else kept
        suppressed = state.get(self._suppressed_name, part)
        count = 0 if suppressed is MISSING else suppressed
        if passed >= most:
            state.put(self._suppressed_name, count + 1, part)
            return message.with_added_metadata(**{EXCEEDED: True}) if self._marks else None
        state.put(self._name, [begin, passed + 1], part, begin + self._period - state.clock)
        if count:
            state.put(self._suppressed_name, MISSING, part)
        return message.with_added_metadata(**{SUPPRESSED: count})

    def _read_limit(self, batch: Batch, index: int, ex: Execution) -> int:
        text = self._limit.text_of(batch, index, ex)
        try:
            return int(text)
        except ValueError:
            raise MessageError(f"max is {text!r}; expected a number of messages") from None


def build(parsed: ParsedFields, context: BuildContext) -> ThrottleProcessor:
    """Compile the key and the limit."""
    return ThrottleProcessor(parsed, ComponentRef(context.component))
