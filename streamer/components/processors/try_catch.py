"""`try_catch`: runs processors on each message until one fails, then others that recover from it.

It "combines the behaviour of the try and catch processors into a single block with an explicit
recovery path". Before the recovery runs, the failure moves into a metadata object, and the
message's mark is cleared: so it works with `error_handling.strict` too, where a failed message
reaches no `catch`, and a failure of the recovery itself is a new one.
"""

from __future__ import annotations

from typing import Any, Final

from streamer.core.message import Execution, Failure, Message
from streamer.sdk.processing import run, run_singly
from streamer.sdk.processing.composite import CompositeProcessor, make_composite
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

PROCESSORS: Final = "processors"
CATCH: Final = "catch"
ERROR_METADATA: Final = "error_metadata"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "try_catch",
    "Runs processors on each message until one fails, and others on the messages that failed.",
    description=(
        "Each message is a batch by itself inside. One that fails skips what is left of "
        "`processors`. Then its error is put into a metadata object (`what`, `name`, `label` and "
        "`path`: `@error.what`) and cleared, and `catch` runs on it. Since it is no longer marked, "
        "`error()` gives nothing there, and an error in `catch` is a new one. What comes out is "
        "one batch again. With `error_handling.strict` this is the way to recover from errors."
    ),
    status="beta",
    fields=(
        Field(
            PROCESSORS,
            "processor",
            "Processors to run on each message, until one of them fails.",
            default=(),
            shape="array",
        ),
        Field(
            CATCH,
            "processor",
            "Processors to run on each message that has failed; without any, its error is only "
            "put into the metadata and cleared.",
            default=(),
            shape="array",
        ),
        Field(
            ERROR_METADATA,
            "string",
            "The metadata key that the error is put under.",
            default="error",
        ),
    ),
    examples=(
        Example(
            "Recover, and keep what went wrong",
            "pipeline:\n"
            "  processors:\n"
            "    - try_catch:\n"
            "        processors:\n"
            "          - mapping: root.age = this.age.number()\n"
            "        catch:\n"
            "          - mutation: root.problem = @error.what\n",
        ),
    ),
    categories=("Composition",),
)


def build(parsed: ParsedFields, context: BuildContext) -> CompositeProcessor:
    """Build the children, which run in strict mode, and those for messages that failed."""
    children, recovery = context.build_all(parsed[PROCESSORS]), context.build_all(parsed[CATCH])
    key = parsed[ERROR_METADATA]

    def run_and_recover(messages: list[Message], ex: Execution) -> list[Message]:
        made: list[Message] = []
        for batch in run_singly(children, messages, ex):
            if batch[0].error is None:
                made += batch
                continue
            failed = [_with_error_metadata(message, key) for message in batch]
            for recovered in run(recovery, [failed], ex):
                made += recovered
        return made

    return make_composite(run_and_recover, (*children, *recovery))


def _with_error_metadata(message: Message, key: str) -> Message:
    error = message.error
    if error is None:
        return message
    description: dict[str, Any] = {"what": str(error)}
    if isinstance(error, Failure):
        description |= {"name": error.name, "label": error.label, "path": error.path}
    return message.with_error(None).with_added_metadata(**{key: description})
