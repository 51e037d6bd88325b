"""The `batched` input: "Consumes data from a child input and applies a batching policy"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.connectors.spool.batched_input import BatchedInput
from streamer.sdk.processing.batching import POLICY_FIELDS, build_policy, policy_problems
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

CHILD: Final = "child"
POLICY: Final = "policy"


def _check(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    for name, text in policy_problems(parsed[POLICY]):
        yield f"{POLICY}.{name}" if name else POLICY, text


SPEC: Final = Spec(
    Kind.INPUT,
    "batched",
    "Reads another input and puts its messages into batches.",
    description=(
        "The other input is read on the driver, with its processors, and a closed batch goes "
        "into the spool; `period` is the time since the last one. Held messages are read "
        "again at the next start. Batches of the other input are never divided. Windows and "
        "`memory` buffers make batches with less effort."
    ),
    fields=(
        Field(CHILD, "input", "The input that is read."),
        Field(POLICY, "object", "When a batch is closed.", children=POLICY_FIELDS),
    ),
    check=_check,
    begin={"policy.count": 10},
    categories=("Utility",),
    runs="children",
)


def build(parsed: ParsedFields, context: BuildContext) -> BatchedInput:
    """Build the other input; it is read once this one is opened."""
    whole = context.with_processors()
    return BatchedInput(whole.build(parsed[CHILD]), build_policy(parsed[POLICY], context))
