"""`fallback`: tries outputs in order until one takes the message.

"Attempts to send each message to a child output, starting from the first output on the list. If an
output attempt fails then the next output in the list is attempted, and so on."
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.in_order import deliver_one_by_one, goes_one_by_one
from streamer.sdk.output.protocols import (
    Composition,
    FailedBatch,
    SendOutcome,
    as_untried,
    renumber_failures,
)
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedComponent, Spec

FALLBACK_ERROR: Final = "fallback_error"

SPEC: Final = Spec(
    Kind.OUTPUT,
    "fallback",
    "Sends messages to the first output of a list that accepts them.",
    description=(
        "Messages that an output does not accept go to the next one, with the error in the "
        "metadata `fallback_error`. If only some messages of a batch have failed, only these "
        "continue. A message that no output accepts is sent again, beginning with the first "
        "output. A message that the last output rejects is handled alone, as described on the "
        "page on delivery.\n"
        "\n"
        "If all outputs send one batch at a time (`max_in_flight: 1`), messages that one has "
        "not accepted go to the next one before any later message is sent. With `batching` in "
        "an output, failed messages continue after all available ones were tried.\n"
        "\n"
        "An output that waits for its connection, such as `websocket`, does not fail: wrap it "
        "in a `drop_on` with `back_pressure` to continue without it. The driver writes files "
        "and standard output at the end of a micro-batch and retries until it succeeds, so "
        "nothing falls back from them."
    ),
    config=Field(
        "",
        "output",
        "The outputs, in the order in which they are tried.",
        default=(),
        shape="array",
        check=lambda outputs: None if outputs else "is empty; expected one output at least",
        examples=([{"stdout": {}}],),
    ),
    examples=(
        Example(
            "A file for what a server does not take",
            "output:\n"
            "  fallback:\n"
            "    - http_client:\n"
            "        url: http://localhost:4195/post\n"
            "        retries: 3\n"
            "        retry_period: 1s\n"
            "    - file:\n"
            "        path: not_sent.jsonl\n"
            "      processors:\n"
            "        - mapping: |\n"
            "            root = this\n"
            "            root.problem = @fallback_error\n",
        ),
    ),
    categories=("Utility",),
    runs="children",
)


class FallbackOutput(Composition):
    """Passes on to each output what the one before it has not taken."""

    def __init__(self, outputs: Sequence[Composition], refs: Sequence[ComponentRef] = ()) -> None:
        self._outputs = outputs
        self._refs = refs
        self._is_one_by_one = goes_one_by_one(outputs)

    def children(self) -> Sequence[Composition]:
        """Return the outputs."""
        return self._outputs

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Send batches to the outputs in turn."""
        if self._is_one_by_one and len(batches) > 1:

            def deliver(one: Sequence[Batch], its: Execution) -> SendOutcome:
                return self.deliver(one, its, hold=hold)

            return deliver_one_by_one(deliver, batches, ex, hold=hold)
        sent = SendOutcome(len(batches))
        waiting = as_untried(batches)
        last = self._outputs[-1]
        for number, output in enumerate(self._outputs):
            # One that fails must not keep others from being tried, but at the last output.
            tried = [one.batch for one in waiting]
            outcome = output.deliver(tried, ex, hold=hold and output is last)
            sent.written += outcome.written
            waiting = renumber_failures(waiting, outcome)
            if output is last:
                break
            # What waits for a connection has not failed, and comes to this output again.
            for one in waiting:
                if one.error.not_tried:
                    sent.fail(one.number, one.error, one.places)
            waiting = [one for one in waiting if not one.error.not_tried]
            self._sample_failures(number, waiting, ex)
            waiting = [_with_reason(one) for one in waiting]
            if not waiting:
                return sent
        for one in waiting:
            sent.fail(one.number, one.error, one.places)
        return sent

    def _sample_failures(self, number: int, failed: Sequence[FailedBatch], ex: Execution) -> None:
        """Show some of what goes to the next output as failed in the one that did not take it."""
        if ex.failures is None or not self._refs:
            return
        for one in failed:
            text = one.error.by_index(len(one.batch))[0]
            ex.failures.add("fallback", self._refs[number].fields, str(text), one.batch)


def _with_reason(left: FailedBatch) -> FailedBatch:
    """Return what has failed with the reason in the metadata of each message."""
    texts = left.error.by_index(len(left.batch))
    batch = [
        message.with_added_metadata(**{FALLBACK_ERROR: str(texts[index])})
        for index, message in enumerate(left.batch)
    ]
    return left._replace(batch=batch)


def build(parsed: Sequence[ParsedComponent], context: BuildContext) -> FallbackOutput:
    """Build the outputs."""
    return FallbackOutput(context.build_all(parsed), [ComponentRef(one) for one in parsed])
