"""`drop_on`: drops what an output does not take, instead of trying it again.

"Attempts to write messages to a child output and if the write fails for one of a list of
configurable reasons the message is dropped (acked) instead of being reattempted (or nacked)."
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from streamer.core.durations import SECOND, format_duration
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.protocols import Composition, SendError, SendOutcome
from streamer.sdk.regex_field import compile_pattern, patterns_problem
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field

ERROR: Final = "error"
ERROR_PATTERNS: Final = "error_patterns"
BACK_PRESSURE: Final = "back_pressure"
OUTPUT: Final = "output"


def _problems(parsed: Any) -> Iterable[tuple[str, str]]:
    if parsed[ERROR] and parsed[ERROR_PATTERNS]:
        yield ERROR_PATTERNS, "is ineffective when 'error' is set to `true`; leave out one of them"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "drop_on",
    "Drops messages that an output does not accept, for selected errors.",
    description=(
        "Batches are sent one by one. A batch that `back_pressure` drops may still arrive "
        "later, because the output continues with it; all other batches are dropped until "
        "then."
    ),
    fields=(
        Field(
            ERROR,
            "bool",
            "True if failed messages are dropped, for any reason.",
            default=False,
        ),
        Field(
            ERROR_PATTERNS,
            "string",
            "Regular expressions (RE2); what fails for a reason that has one of them somewhere is "
            "dropped.",
            optional=True,
            shape="array",
            examples=(["and that was really bad$"], ["roughly [0-9]+ issues occurred"]),
            check=patterns_problem,
        ),
        duration_field(
            BACK_PRESSURE,
            "Maximum time of an output for a batch before it is dropped; without `error` it "
            "counts as not sent instead.",
            optional=True,
            examples=("30s", "1m"),
        ),
        Field(OUTPUT, "output", "The output."),
    ),
    check=_problems,
    examples=(
        Example(
            "Copies that need not arrive",
            "output:\n"
            "  broker:\n"
            "    outputs:\n"
            "      - file: { path: all.jsonl }\n"
            "      - drop_on:\n"
            "          error: true\n"
            "          output:\n"
            "            http_client: { url: 'http://localhost:8080' }\n",
        ),
    ),
    categories=("Utility",),
    runs="children",
)


class DropOnOutput(Composition):
    """Sends batches one by one, and drops some of those that fail."""

    def __init__(
        self,
        output: Composition,
        error: bool,
        patterns: Sequence[Any],
        back_pressure: int | None,
        origin: ComponentRef,
    ) -> None:
        self._output = output
        self._error = error
        self._patterns = patterns
        self._max_wait = back_pressure
        self._origin = origin
        self._late_batch: Future[SendOutcome] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._is_over = threading.Event()

    def children(self) -> Sequence[Composition]:
        """Return the output."""
        return (self._output,)

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Send batches; what is dropped counts as sent."""
        sent = SendOutcome(len(batches))
        for number, batch in enumerate(batches):
            before = sent.errors[number - 1] if number else None
            if hold and before is not None and not before.is_rejected:
                sent.fail(number, SendError("waits for a batch before it", not_tried=True))
                continue
            outcome = (
                self._send_in_time(batch, ex)
                if self._max_wait
                else self._output.deliver([batch], ex)
            )
            sent.written += outcome.written
            error = outcome.errors[0]
            if error is not None and (error.not_tried or not self._is_dropped(error, ex)):
                sent.fail(number, error)
        return sent

    def _is_dropped(self, error: SendError, ex: Execution) -> bool:
        if self._error:
            self._origin.log(ex, "WARN", f"Message dropped due to: {error.text}")
            return True
        for number, pattern in enumerate(self._patterns):
            if pattern.search(error.text):
                text = f"Message dropped due to error matching pattern {number}: {error.text}"
                self._origin.log(ex, "WARN", text)
                return True
        return False

    def _send_in_time(self, batch: Batch, ex: Execution) -> SendOutcome:
        """Send a batch, but wait for it no longer than is wanted."""
        if self._late_batch is None or self._late_batch.done():
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="drop_on")
            apart = self._detached_execution(ex)
            waiting = self._thread.submit(self._output.deliver, [batch], apart)
            try:
                sent = waiting.result((self._max_wait or 0) / SECOND)
                for key, tally in apart.component_stats.items():
                    ex.stats_of(key).add(tally)
                return sent
            except TimeoutError:
                self._late_batch = waiting
        self._origin.log(ex, "WARN", "Message dropped due to back pressure.")
        sent = SendOutcome(1)
        if not self._error:
            wait = format_duration(self._max_wait or 0)
            sent.fail(0, SendError(f"experienced back pressure beyond: {wait}"))
        return sent

    def _detached_execution(self, ex: Execution) -> Execution:
        """Return a run for the thread, which ends with its next pause once nobody waits for it."""
        over = self._is_over

        def sleep(ns: int) -> None:
            if over.wait(ns / SECOND):
                raise SendError("nobody waits for it any more")

        apart = Execution(
            ex.now,
            ex.log,
            ex.count,
            strict=ex.strict,
            elapsed=ex.elapsed,
            sleep=sleep,
            report_wait=ex.report_wait,
        )
        apart.counters, apart.answers = ex.counters, ex.answers
        apart.counter_bounds = ex.counter_bounds
        apart.custom_metrics = ex.custom_metrics
        apart.rejected, apart.origins = ex.rejected, ex.origins
        return apart

    def __del__(self) -> None:
        """End what the thread still tries when the task has ended."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.shutdown(wait=False)


def build(parsed: ParsedFields, context: BuildContext) -> DropOnOutput:
    """Build the output and compile the patterns."""
    return DropOnOutput(
        context.build(parsed[OUTPUT]),
        parsed[ERROR],
        [compile_pattern(text) for text in parsed[ERROR_PATTERNS] or ()],
        parsed[BACK_PRESSURE],
        ComponentRef(context.component),
    )
