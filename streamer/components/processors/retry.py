"""`retry`: runs processors on each message until it comes out without an error.

It "executes child processors and if a resulting message is errored then, after a specified backoff
period, the same original message will be attempted again through those same processors". The error
that a message comes in with is cleared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.backoff import BACKOFF, Backoff, pause_fields, read_pauses
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing import Processor, run
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.thread_pool import ComponentPool

PROCESSORS: Final = "processors"
PARALLEL: Final = "parallel"
MAX_RETRIES: Final = "max_retries"

RETRY_COUNT: Final = "retry_count"
BACKOFF_DURATION: Final = "backoff_duration"


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    if not parsed[PROCESSORS]:
        yield PROCESSORS, "at least one child processor must be specified"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "retry",
    "Runs processors on each message repeatedly until they succeed.",
    description=(
        "Each message of a batch is processed separately, and every attempt starts with the "
        "original message. If an attempt makes several messages, one failed message makes it "
        "fail. After the last attempt, its result continues with the error. The result is one "
        "batch; its messages have the metadata `retry_count`, the number of failed attempts, "
        "and `backoff_duration`, the nanoseconds waited. To retry a whole batch, combine it "
        "into one message first, with `archive`. The micro-batch waits too."
    ),
    status="beta",
    fields=(
        Field(
            BACKOFF,
            "object",
            "Pause between attempts; it grows by half each time.",
            children=pause_fields("500ms", "10s", "1m"),
        ),
        Field(PROCESSORS, "processor", "Processors to run on each message.", shape="array"),
        Field(
            PARALLEL,
            "bool",
            "Work on all messages of a batch at once, in threads, instead of one by one.",
            default=False,
        ),
        Field(
            MAX_RETRIES,
            "int",
            "Maximum number of failed attempts; 0 for no limit.",
            default=0,
        ),
    ),
    check=_check,
    examples=(
        Example(
            "Wait until it works",
            "pipeline:\n"
            "  processors:\n"
            "    - retry:\n"
            "        backoff:\n"
            "          initial_interval: 100ms\n"
            "          max_interval: 5s\n"
            "          max_elapsed_time: 0s\n"
            "        processors:\n"
            "          - http: {url: 'http://localhost:8080/orders', verb: POST, retries: 0}\n",
        ),
    ),
    begin={"processors": [{"noop": {}}]},
    categories=("Composition",),
    limits="its micro-batch waits with it",
)


class RetryProcessor:
    """Runs children over batches of one until nothing that comes out has failed."""

    def __init__(
        self,
        pool: ComponentPool[Sequence[Processor]],
        backoff: Backoff,
        origin: ComponentRef,
        max_failures: int = 0,
    ) -> None:
        """Take the threads (one, if messages are tried in turn) and the pauses.

        Args:
            pool: of which each has children of its own.
            backoff: the pauses between tries.
            origin: where it stands.
            max_failures: how many tries may fail; 0 for any number.
        """
        self._pool = pool
        self._backoff = backoff
        self._origin = origin
        self._max_failures = max_failures

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return all that comes out as one batch, in order."""
        made = [
            message
            for one in self._pool.map(self._process_with_retries, batch, ex)
            for message in one
        ]
        return [made] if made else []

    def _process_with_retries(
        self, children: Sequence[Processor], message: Message, ex: Execution
    ) -> Batch:
        message = message.with_error(None)
        pauses = self._backoff.pauses(ex.elapsed)
        failures = waited = 0
        while True:
            made = [one for batch in run(children, [[message]], ex) for one in batch]
            errors = [one.error for one in made if one.error is not None]
            if not errors:
                break
            failures += 1
            pause = next(pauses, None) if failures != self._max_failures else None
            if pause is None:
                what = "wait period" if failures != self._max_failures else "number of retries"
                self._origin.log(ex, "DEBUG", f"Giving up after the maximum {what}: {errors[0]}")
                break
            self._origin.log(ex, "DEBUG", f"Trying again in {pause / 1e9:.3f}s: {errors[0]}")
            waited += pause
            ex.sleep(pause)
        metadata = {RETRY_COUNT: failures, BACKOFF_DURATION: waited}
        return [one.with_added_metadata(**metadata) for one in made]


def build(parsed: ParsedFields, context: BuildContext) -> RetryProcessor:
    """Prepare to build the children, once for each thread."""
    backoff = parsed[BACKOFF]
    return RetryProcessor(
        ComponentPool(
            lambda: context.isolated().build_all(parsed[PROCESSORS]),
            max_threads=0 if parsed[PARALLEL] else 1,
        ),
        read_pauses(backoff),
        ComponentRef(context.component),
        parsed[MAX_RETRIES],
    )
