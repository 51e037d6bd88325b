"""`try_catch`: runs processors on each message until one fails, then others that recover from it.

It "combines the behaviour of the try and catch processors into a single block with an explicit
recovery path". Before the recovery runs, the failure moves into a metadata object, and the
message's mark is cleared: so it works with `error_handling.strict` too, where a failed message
reaches no `catch`, and a failure of the recovery itself is a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamer.core.execution import Execution
from streamer.core.message import Failure, Message
from streamer.sdk.processing import Processor, run, run_singly
from streamer.sdk.processing.composition import ProcessorComposition, compose
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

PROCESSORS: Final = "processors"
CATCH: Final = "catch"
ERROR_METADATA: Final = "error_metadata"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "try_catch",
    "Runs processors on each message until one fails, and others on the messages that failed.",
    description=(
        "Inside, each message is a separate batch. A failed message skips the rest of "
        "`processors`. Then its error is put into a metadata object (`what`, `name`, `label` "
        "and `path`: `@error.what`) and cleared, and `catch` runs on it. Because it is no "
        "longer marked, `error()` is null there, and an error in `catch` is a new one. The "
        "result is one batch again. With `error_handling.strict` this is the way to recover "
        "from errors."
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


class TryCatchProcessor(ProcessorComposition):
    """Runs children in strict mode over batches of one, and others over those that failed."""

    def __init__(
        self, children: Sequence[Processor], recovery: Sequence[Processor], key: str
    ) -> None:
        self._children = children
        self._recovery = recovery
        self._key = key

    def run_singly(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Run the children on each message, and the recovery on what has failed."""
        made: list[Message] = []
        for batch in run_singly(self._children, messages, ex):
            if batch[0].error is None:
                made += batch
                continue
            for recovered in run(self._recovery, [[*map(self._with_error_metadata, batch)]], ex):
                made += recovered
        return made

    def _with_error_metadata(self, message: Message) -> Message:
        error = message.error
        if error is None:
            return message
        description: dict[str, Any] = {"what": str(error)}
        if isinstance(error, Failure):
            description |= {"name": error.name, "label": error.label, "path": error.path}
        return message.with_error(None).with_added_metadata(**{self._key: description})


def build(parsed: ParsedFields, context: BuildContext) -> Processor:
    """Build the children of both lists."""
    children, recovery = context.build_all(parsed[PROCESSORS]), context.build_all(parsed[CATCH])
    made = TryCatchProcessor(children, recovery, parsed[ERROR_METADATA])
    return compose(made, (*children, *recovery))
