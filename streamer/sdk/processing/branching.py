"""A branch: requests are made of messages, processors run on them, and results are mapped back.

Both `branch` and the stages of a `workflow` are made of it. What is told in errors and when is
Benthos's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from streamer.bloblang import Mapping as Bloblang
from streamer.bloblang import compile_mapping
from streamer.bloblang.analysis.read_write_sets import Target, find_reads, find_writes
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ERROR_COUNTER, ComponentRef
from streamer.sdk.processing import Processor, run
from streamer.sdk.spec import BuildContext, Field, ParsedFields

REQUEST_MAP: Final = "request_map"
PROCESSORS: Final = "processors"
RESULT_MAP: Final = "result_map"

BRANCH_FIELDS: Final = (
    Field(
        REQUEST_MAP,
        "string",
        "A Bloblang mapping that makes the request of a message; `deleted()` as its root skips the "
        "branch. When it is empty, the request is a copy of the message.",
        default="",
        mapping=True,
        examples=('root = {"id": this.doc.id, "content": this.doc.body.text}',),
    ),
    Field(
        PROCESSORS,
        "processor",
        "Processors to run on the requests of a batch. They must return as many messages as "
        "they were given, in the same order: do not filter or split here.",
        shape="array",
    ),
    Field(
        RESULT_MAP,
        "string",
        "A Bloblang mapping that changes the message: `this` and `metadata()` are the result's, "
        "`root` and `@` the message's. When it is empty, the message stays as it is.",
        default="",
        mapping=True,
        examples=(
            'meta foo_code = metadata("code")\nroot.foo_result = this',
            "root.raw_result = content().string()",
        ),
    ),
)

NO_PROCESSORS: Final = "the branch processor requires at least one child processor"


@dataclass(slots=True)
class BranchResults:
    """The results of a branch's processors, by request.

    Attributes:
        messages: by the place of the message in its batch; None where the branch was skipped, or
            has failed for it.
        errors: why it has failed, by place.
        broken: why it has failed for all; then there are no messages.
    """

    messages: list[Message | None] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)
    broken: str = ""


class Branch:
    """Two mappings, and what runs between them.

    Attributes:
        reads: the parts of a message that requests are made of; none when they are copies.
        writes: the parts of a message that results go to.
    """

    def __init__(
        self,
        request: Bloblang | None,
        children: Sequence[Processor],
        result: Bloblang | None,
        origin: ComponentRef,
    ) -> None:
        """Take the mappings, None for empty ones, the processors, and where the branch stands."""
        self._request = request
        self._children = children
        self._result = result
        self._origin = origin

    @property
    def reads(self) -> list[Target]:
        """The parts of a message that requests are made of; none when they are copies."""
        return find_reads(self._request) if self._request is not None else []

    @property
    def writes(self) -> list[Target]:
        """The parts of a message that results go to."""
        return find_writes(self._result) if self._result is not None else []

    def run_requests(self, batch: Batch, applies: Sequence[bool], ex: Execution) -> BranchResults:
        """Make the requests of a batch and run the processors on them.

        Args:
            batch: the messages.
            applies: for each of them whether the branch is for it.
            ex: the run.
        """
        results = BranchResults([None] * len(batch))
        places: list[int] = []
        requests: Batch = []
        for place in range(len(batch)):
            if not applies[place]:
                continue
            try:
                request = self._request_of(batch, place, ex)
            except MessageError as error:
                self._log_error(ex, "DEBUG", f"Failed to map request '{place}': {error}")
                results.errors[place] = f"request mapping failed: {error}"
                continue
            if request is not None:
                places.append(place)
                requests.append(request)
        if not requests:
            return results
        made = [message for one in run(self._children, [requests], ex) for message in one]
        self._align(results, places, made, ex)
        return results

    def apply(self, batch: Batch, results: BranchResults, ex: Execution) -> dict[int, str]:
        """Map results back onto the messages of a batch, which are replaced in it.

        Returns:
            Why that has failed, by place.
        """
        errors: dict[int, str] = {}
        if self._result is None:
            return errors
        beside = [Message(b"") if one is None else one for one in results.messages]
        for place, result in enumerate(results.messages):
            if result is None:
                continue
            try:
                made = self._result.apply_to(batch[place], beside, place, ex)
            except MessageError as error:
                self._log_error(ex, "DEBUG", f"Failed to map result '{place}': {error}")
                errors[place] = f"result mapping failed: {error}"
                continue
            if made is not None:
                batch[place] = made
        return errors

    def _request_of(self, batch: Batch, place: int, ex: Execution) -> Message | None:
        if self._request is not None:
            return self._request.apply_to_empty(batch, place, ex)
        message = batch[place]
        return message if message.error is None else message.with_error(None)

    def _align(self, results: BranchResults, places: list[int], made: Batch, ex: Execution) -> None:
        """Put what came out of the processors to the messages that it is for."""
        total = len(results.messages)
        ended = total - len(places) + len(made)
        if not made:
            results.broken = "child processors resulted in zero messages"
            self._log_error(ex, "ERROR", f"Child processors failed: {results.broken}")
        elif len(made) != len(places):
            results.broken = (
                "message count from branch processors does not match request, started with "
                f"{ended} messages, finished with {total}"
            )
            text = (
                f"Failed to align branch result: {results.broken}; do not filter or split messages "
                "within a branch, but before or after it"
            )
            self._log_error(ex, "ERROR", text)
        else:
            for place, message in zip(places, made, strict=True):
                if message.error is None:
                    results.messages[place] = message
                else:
                    results.errors[place] = f"processors failed: {message.error}"

    def _log_error(self, ex: Execution, level: str, text: str) -> None:
        self._origin.log(ex, level, text)
        ex.count(ERROR_COUNTER, 1, **self._origin.fields)


def build_branch(
    parsed: Mapping[str, object] | ParsedFields, context: BuildContext, path: str = ""
) -> Branch:
    """Make the branch that the fields of `BRANCH_FIELDS` describe.

    Args:
        parsed: the fields.
        context: that of the component.
        path: where the branch stands, when it is a part of the component; it has no label then.
    """
    request, result = str(parsed[REQUEST_MAP]), str(parsed[RESULT_MAP])
    children = parsed[PROCESSORS]
    assert isinstance(children, tuple)
    return Branch(
        compile_mapping(request) if request.strip() else None,
        context.build_all(children),
        compile_mapping(result) if result.strip() else None,
        ComponentRef(
            replace(context.component, label="", path=path) if path else context.component
        ),
    )
