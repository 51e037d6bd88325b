"""`while`: runs processors on a batch again and again, for as long as a check is true.

It "checks a Bloblang query against each batch of messages and executes child processors on them for
as long as the query resolves to true". The query looks at the first message of the batch; once the
processors have made several batches, of the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import query_bool
from streamer.sdk.processing import Processor, run_all
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

AT_LEAST_ONCE: Final = "at_least_once"
MAX_LOOPS: Final = "max_loops"
CHECK: Final = "check"
PROCESSORS: Final = "processors"

_NO_CHECK: Final = "a check query is required"


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    if not parsed[CHECK].strip():
        yield CHECK, _NO_CHECK


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "while",
    "Runs processors on each batch for as long as a Bloblang query is true.",
    description=(
        "The query is evaluated on a batch's first message before each round; when it fails, it "
        "is logged and the rounds end. They also end when no message is left."
    ),
    fields=(
        Field(
            AT_LEAST_ONCE,
            "bool",
            "Run the processors a first time without asking.",
            default=False,
        ),
        Field(
            MAX_LOOPS,
            "int",
            "The most rounds for a batch; 0 for no such limit.",
            default=0,
            advanced=True,
        ),
        Field(
            CHECK,
            "string",
            "A Bloblang query that returns whether there is another round.",
            default="",
            mapping=True,
            check=lambda text: None if text.strip() else _NO_CHECK,
            examples=("errored()", "this.urls.unprocessed.length() > 0"),
        ),
        Field(PROCESSORS, "processor", "Processors to run in each round.", shape="array"),
    ),
    check=_check,
    examples=(
        Example(
            "Take a number down",
            "pipeline:\n"
            "  processors:\n"
            "    - while:\n"
            "        check: this.left > 0\n"
            "        max_loops: 100\n"
            "        processors:\n"
            "          - mapping: root.left = this.left - 1\n",
        ),
    ),
    begin={"check": "this.todo > 0", "processors": [{"noop": {}}]},
    categories=("Composition",),
)


class WhileProcessor:
    """Runs children in rounds."""

    def __init__(
        self,
        check: Mapping,
        children: Sequence[Processor],
        origin: ComponentRef,
        *,
        at_least_once: bool = False,
        max_loops: int = 0,
    ) -> None:
        """Take the query, what runs in a round, and how often it may; 0 for any number."""
        self._check = check
        self._children = children
        self._origin = origin
        self._at_least_once = at_least_once
        self._max_loops = max_loops

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return what is left after the last round."""
        batches = [batch]
        again = self._at_least_once or self._should_repeat(batch, ex)
        rounds = 0
        while again:
            if 0 < self._max_loops <= rounds:
                self._origin.log(ex, "TRACE", "Reached max loops count")
                break
            self._origin.log(ex, "TRACE", "Looped")
            batches = run_all(self._children, batches, ex)
            if not batches:
                break
            again = self._should_repeat(batches[0], ex)
            rounds += 1
        return batches

    def _should_repeat(self, batch: Batch, ex: Execution) -> bool:
        try:
            return query_bool(self._check, batch, 0, ex)
        except MessageError as error:
            self._origin.log(ex, "ERROR", f"Query failed for loop: {error}")
            return False


def build(parsed: ParsedFields, context: BuildContext) -> WhileProcessor:
    """Compile the query and build the children."""
    return WhileProcessor(
        compile_mapping(parsed[CHECK]),
        context.build_all(parsed[PROCESSORS]),
        ComponentRef(context.component),
        at_least_once=parsed[AT_LEAST_ONCE],
        max_loops=parsed[MAX_LOOPS],
    )
