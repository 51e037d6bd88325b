"""`deduplicate`: drops messages of a key that came before, by the state of the key.

Flink's deduplication (`ROW_NUMBER() … = 1` by time) and Spark's `dropDuplicatesWithinWatermark`.
`dedupe` does the same with a cache, which does not go back with a replay; this one does.
"""

from __future__ import annotations

from typing import Final

from streamer.core.execution import Execution
from streamer.core.keyed_state import MISSING, KeyedState
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.stateful import KEY, KEY_FIELD, StatefulProcessor
from streamer.sdk.spec import (
    BuildContext,
    Example,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)

TTL: Final = "ttl"


def _find_ttl_problem(value: int | None) -> str | None:
    return None if value is None or value > 0 else "must be longer than 0s, such as 24h"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "deduplicate",
    "Passes the first message of a key and drops the others, exactly, also across restarts.",
    description=(
        "The first message of a key passes. Later ones are dropped, for `ttl` after the first "
        "by event time; the next message after it counts as a first one.\n"
        "\n"
        "It needs a key: the buffer `keyed_state` with a `key_mapping`, or a window. Time is "
        "the buffer's event time, and never runs backwards. Its state is in the checkpoint: a "
        "message of a repeated micro-batch does not count as seen, and after a restart no "
        "message passes twice. See [State by key](../../state.md). `dedupe` does the same "
        "with a cache, which streams can share and which is not exact."
    ),
    status="beta",
    fields=(
        KEY_FIELD,
        duration_field(
            TTL,
            "Time for which a key is remembered after the message that passed. Default: "
            "`state_ttl` of the buffer, or for ever.",
            default="",
            check=_find_ttl_problem,
            examples=("24h",),
        ),
    ),
    examples=(
        Example(
            "Each order once a day",
            "buffer:\n"
            "  keyed_state:\n"
            "    key_mapping: root = this.order\n"
            "    timestamp_mapping: root = this.at\n"
            "pipeline:\n"
            "  processors:\n"
            "    - label: orders_once\n"
            "      deduplicate:\n"
            "        ttl: 24h\n",
        ),
        Example(
            "Within each customer, each address once, for ever",
            "buffer:\n"
            "  keyed_state:\n"
            "    key_mapping: root = this.customer\n"
            "pipeline:\n"
            "  processors:\n"
            "    - deduplicate:\n"
            "        key: ${! this.address }\n",
        ),
    ),
    categories=("Utility",),
)


class DeduplicateProcessor(StatefulProcessor):
    """Remembers the keys whose first message has passed."""

    def __init__(self, parsed: ParsedFields, origin: ComponentRef) -> None:
        """Take the fields, which `SPEC` has found to be right."""
        super().__init__(parsed[KEY], origin)
        self._ttl: int | None = parsed[TTL]
        self._name = f"{origin.state_scope}/deduplicate"

    def decide(
        self, batch: Batch, index: int, ex: Execution, state: KeyedState, part: str
    ) -> Message | None:
        """Return a message that is the first of its key; None for another one."""
        if state.get(self._name, part) is not MISSING:
            return None
        state.put(self._name, True, part, self._ttl)
        return batch[index]


def build(parsed: ParsedFields, context: BuildContext) -> DeduplicateProcessor:
    """Compile the key."""
    return DeduplicateProcessor(parsed, ComponentRef(context.component))
