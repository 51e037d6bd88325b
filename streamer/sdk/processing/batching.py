"""Batch policies: the fields of Benthos's `batching`, and the batches that they cut.

In Benthos a policy collects messages in memory until a limit is reached. Here Spark's micro-batch
is what has been collected: a policy cuts it into batches, and what is left at its end is a batch
as well, since nothing is held back from one micro-batch to the next. So the limits are upper
bounds as in Benthos, and batches may be smaller. `period` cannot pass within a micro-batch, which
is at hand all at once; it says how long to collect, which is for the plan's trigger interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as TypingMapping
from dataclasses import dataclass, field
from typing import Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.mapping_query import query_bool
from streamer.sdk.processing import Processor, run_processor
from streamer.sdk.spec import BuildContext, Field, ParsedFields, duration_field

COUNT: Final = "count"
BYTE_SIZE: Final = "byte_size"
PERIOD: Final = "period"
CHECK: Final = "check"
PROCESSORS: Final = "processors"

CREATED_COUNTER: Final = "batch_created"

POLICY_FIELDS: Final = (
    Field(COUNT, "int", "Close a batch at this many messages; 0 for no such limit.", default=0),
    Field(
        BYTE_SIZE,
        "int",
        "Close a batch at this many bytes or more; 0 for no such limit.",
        default=0,
    ),
    duration_field(
        PERIOD,
        "Time to collect messages; the minimum distance of two micro-batches. An incomplete "
        "batch is closed at the end of a micro-batch.",
        default="",
        examples=("1s", "1m", "500ms"),
    ),
    Field(
        CHECK,
        "string",
        "A Bloblang query over the batch so far, for its last message; true closes the batch.",
        default="",
        mapping=True,
        examples=('this.type == "end_of_transaction"',),
    ),
    Field(
        PROCESSORS,
        "processor",
        "Processors to run on a batch when it is closed; what they make of it is one batch again.",
        optional=True,
        shape="array",
        advanced=True,
    ),
)

BATCHING: Final = "batching"

BATCHING_FIELD: Final = Field(
    BATCHING,
    "object",
    "Combines messages into batches before they are sent. Existing batches are never divided, "
    "and the rest at the end of a micro-batch is sent as it is.",
    children=POLICY_FIELDS,
    advanced=True,
)
"""The field of outputs that send batches."""


def policy_problems(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    """Return what is wrong with a policy that is in use, as pairs of field and text."""
    for name in (COUNT, BYTE_SIZE):
        if parsed[name] < 0:
            yield name, f"is {parsed[name]}; expected 0 (no limit) or more"
    if parsed[PERIOD] is not None and parsed[PERIOD] <= 0:
        yield PERIOD, "must be longer than 0s; leave it empty for none"
    if not (parsed[COUNT] or parsed[BYTE_SIZE] or parsed[PERIOD] or parsed[CHECK]):
        yield (
            "",
            "batch policy must have at least one active trigger; set count, byte_size, period "
            "or check",
        )


def _log_plainly(ex: Execution, level: str, text: str) -> None:
    ex.log(level, text, {})


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """The policy by which a batch is closed, and the processors that run on the batch then.

    Attributes:
        count: messages at which a batch closes, or 0.
        byte_size: bytes at which a batch closes, or 0.
        period: nanoseconds to collect messages for, or None; for the trigger interval.
        check: the query that closes a batch, or None.
        processors: what runs on a closed batch.
        log: how a check that fails is logged: run, level, text.
        labels: of the policy's metric.
    """

    count: int = 0
    byte_size: int = 0
    period: int | None = None
    check: Mapping | None = None
    processors: Sequence[Processor] = ()
    log: Callable[[Execution, str, str], None] = field(default=_log_plainly)
    labels: TypingMapping[str, str] = field(default_factory=dict)

    def batches(self, incoming: Iterable[Batch], ex: Execution) -> Iterator[Batch]:
        """Cut a micro-batch's batches into the policy's.

        An incoming batch is never split (as in Benthos): a limit is looked at after each of its
        messages, but acts at its end. Batches that `processors` filter whole are left out.
        """
        pending: Batch = []
        size = 0
        closes = ""
        for batch in incoming:
            for message in batch:
                pending.append(message)
                if self.byte_size > 0:
                    size += len(message.raw)
                closes = closes or self.closes(pending, size, ex)
            if closes:
                ex.count(CREATED_COUNTER, 1, mechanism=closes, **self.labels)
                yield from self.flush(pending, ex)
                pending, size, closes = [], 0, ""
        if pending:
            yield from self.flush(pending, ex)

    def closes(self, pending: Batch, size: int, ex: Execution) -> str:
        """Return what closes the batch, as its metric names it; empty when nothing does."""
        if 0 < self.count <= len(pending):
            return "count"
        if 0 < self.byte_size <= size:
            return "size"
        if self.check is None:
            return ""
        try:
            return "check" if query_bool(self.check, pending, len(pending) - 1, ex) else ""
        except MessageError as error:
            self.log(ex, "ERROR", f"Failed to execute batch check query: {error}")
            return ""

    def flush(self, pending: Batch, ex: Execution) -> Iterator[Batch]:
        """Run the processors on a closed batch; it comes out as one batch, or not at all."""
        if not self.processors:
            yield pending
            return
        made = [pending]
        for processor in self.processors:
            made = run_processor(processor, made, ex)
        joined = [message for batch in made for message in batch]
        if joined:
            yield joined


def build_policy(
    parsed: ParsedFields,
    context: BuildContext,
    log: Callable[[Execution, str, str], None] = _log_plainly,
) -> BatchPolicy:
    """Make the policy that the fields of `POLICY_FIELDS` describe."""
    return BatchPolicy(
        count=parsed[COUNT],
        byte_size=parsed[BYTE_SIZE],
        period=parsed[PERIOD],
        check=compile_mapping(parsed[CHECK]) if parsed[CHECK] else None,
        processors=context.build_all(parsed[PROCESSORS] or ()),
        log=log,
        labels={"label": "", "path": f"root.{context.component.path}.batching"},
    )


def batching_problems(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    """Return what is wrong with the field `batching` of an output, for its spec's `check`."""
    batching: ParsedFields = parsed[BATCHING]
    if is_batching_used(batching):
        for name, text in policy_problems(batching):
            yield f"{BATCHING}.{name}" if name else BATCHING, text


def output_policy(parsed: ParsedFields, context: BuildContext) -> BatchPolicy | None:
    """Make the policy of an output's field `batching`; None when it leaves batches as they are."""
    batching: ParsedFields = parsed[BATCHING]
    if not is_batching_used(batching):
        return None
    origin = ComponentRef(context.component)
    return build_policy(batching, context, lambda ex, level, text: origin.log(ex, level, text))


def is_batching_used(batching: ParsedFields) -> bool:
    """Return whether a policy does anything, as Benthos does: a count of one does nothing."""
    return bool(
        batching[COUNT] not in (0, 1)
        or batching[BYTE_SIZE]
        or batching[PERIOD] is not None
        or batching[CHECK]
        or batching[PROCESSORS]
    )
