"""`retry`: tries an output again, until it takes a message or the tries are used up.

"Attempts to write messages to a child output and if the write fails for any reason the message is
retried either until success or, if the retries or max elapsed time fields are non-zero, either is
reached."
"""

from __future__ import annotations

from typing import Final

from streamer.sdk.backoff import backoff_fields, read_backoff
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.protocols import Composition
from streamer.sdk.output.retry import RetryingOutput, make_attempt_logger
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

OUTPUT: Final = "output"

SPEC: Final = Spec(
    Kind.OUTPUT,
    "retry",
    "Sends messages that an output does not take again.",
    description=(
        "Every output is tried again for ever by the end of the stream. Use this inside of "
        "another output: to try one of a `fallback` so often before the next, or one of a "
        "`fan_out_fail_fast` broker without sending to the others again."
    ),
    fields=(
        *backoff_fields(0, "500ms", "3s", "0s"),
        Field(OUTPUT, "output", "The output."),
    ),
    examples=(
        Example(
            "Try for a minute, then write to a file",
            "output:\n"
            "  fallback:\n"
            "    - retry:\n"
            "        backoff: { initial_interval: 1s, max_interval: 10s, max_elapsed_time: 1m }\n"
            "        output:\n"
            "          http_client: { url: 'http://localhost:8080', retries: 0 }\n"
            "    - file: { path: not_sent.jsonl }\n",
        ),
    ),
    categories=("Utility",),
    runs="children",
)


def build(parsed: ParsedFields, context: BuildContext) -> RetryingOutput:
    """Build the output."""
    output: Composition = context.build(parsed[OUTPUT])
    origin = ComponentRef(context.component)
    return RetryingOutput(
        output.deliver,
        read_backoff(parsed),
        make_attempt_logger(origin),
        parsed[OUTPUT],
        output=output,
    )
