"""`branch`: runs processors on requests made of messages, and maps the results back.

It "allows you to create a new request message via a Bloblang mapping, execute a list of processors
on the request messages, and, finally, map the result back into the source message using another
mapping". So what would replace a message's content can add to it instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.branching import (
    BRANCH_FIELDS,
    NO_PROCESSORS,
    PROCESSORS,
    Branch,
    build_branch,
)
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    if not parsed[PROCESSORS]:
        yield PROCESSORS, NO_PROCESSORS


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "branch",
    "Runs processors on requests made of messages, and maps the results back into the messages.",
    description=(
        "When the request cannot be made, the processors do not run; when a processor fails, its "
        "result is not mapped; when that fails, the message stays as it is. In each case the "
        "message is marked as failed. Metadata that processors add stays with the result; take it "
        'over with `meta = metadata()` or `meta foo = metadata("bar")` in `result_map`. The '
        "error that a message comes in with is not seen within the branch."
    ),
    fields=BRANCH_FIELDS,
    check=_check,
    examples=(
        Example(
            "A result that is no document",
            "pipeline:\n"
            "  processors:\n"
            "    - branch:\n"
            "        request_map: root = this.document.id\n"
            "        processors:\n"
            "          - cache:\n"
            "              resource: descriptions\n"
            "              operator: get\n"
            "              key: ${! content() }\n"
            "        result_map: root.document.description = content().string()\n"
            "cache_resources:\n"
            "  - label: descriptions\n"
            "    file:\n"
            "      directory: /var/lib/descriptions\n",
        ),
        Example(
            "Only for some messages",
            "pipeline:\n"
            "  processors:\n"
            "    - branch:\n"
            "        request_map: |\n"
            '          root = if this.type == "foo" { this.document } else { deleted() }\n'
            "        processors:\n"
            "          - mapping: root.size = content().length()\n"
            "        result_map: root.size = this.size\n",
        ),
    ),
    begin={"processors": [{"noop": {}}]},
    categories=("Composition",),
)


class BranchProcessor:
    """Takes batches through a branch.

    Attributes:
        branch: the branch, for workflows that it is a stage of.
    """

    def __init__(self, branch: Branch, origin: ComponentRef) -> None:
        """Take the branch, and where it stands."""
        self.branch = branch
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch with the results mapped back."""
        made = list(batch)
        results = self.branch.run_requests(batch, [True] * len(batch), ex)
        if results.broken:
            return [
                [
                    message.with_error(results.errors.get(place, results.broken))
                    for place, message in enumerate(made)
                ]
            ]
        for place, error in results.errors.items():
            made[place] = self._mark_failed(made[place], error, "DEBUG", ex)
        for place, error in self.branch.apply(made, results, ex).items():
            made[place] = self._mark_failed(made[place], error, "ERROR", ex)
        return [made]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Do the same for messages that are batches by themselves."""
        return [self.process([message], ex)[0][0] for message in messages]

    def _mark_failed(self, message: Message, error: str, level: str, ex: Execution) -> Message:
        self._origin.log(ex, level, f"Branch error: {error}")
        return message.with_error(error)


def build(parsed: ParsedFields, context: BuildContext) -> BranchProcessor:
    """Compile the mappings and build the children."""
    return BranchProcessor(build_branch(parsed, context), ComponentRef(context.component))
