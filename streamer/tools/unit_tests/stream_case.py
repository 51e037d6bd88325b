"""A test of a whole stream, from its buffer on, on a scripted clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from streamer.config.unit_tests.definitions import Case
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.engine.driver.rejected_frames import RejectedError
from streamer.engine.offline.scripted import ScriptedStream
from streamer.plan import Plan, make_plan
from streamer.sdk.lookup_table import use_local_tables
from streamer.sdk.spec import ParsedFields
from streamer.tools.unit_tests.batches import Expected, check_batches, check_messages
from streamer.tools.unit_tests.failure import Failure, Line, add_place, format_pair, make_failure
from streamer.tools.unit_tests.hints import DroppedLines, describe_open_windows, find_dropped
from streamer.tools.unit_tests.run_log import RunLog, Throughput
from streamer.tools.unit_tests.steps import ScriptStep, read_steps
from streamer.tools.unit_tests.suite_environment import SuiteEnvironment


def check_stream(case: Case, environment: SuiteEnvironment) -> Iterator[Failure]:
    """Run a case's steps; return what is wrong with what comes out, step by step, then in all.

    Raises:
        StreamerError: the case cannot be run: there is something wrong with the config, a mock or
            a file.
    """
    level = RunLog.plan_level(environment.level)
    plan = make_plan(environment.open_config(case).build_config(), level)
    script = list(read_steps(case.parsed, environment.directory))
    buffer = _find_buffer(plan, case.parsed["buffer"] or "")
    sent = [message for step in script for message in step.messages]
    log = RunLog(environment.log_redacted)
    run = _CaseRun(ScriptedStream(plan, log.add, sent), environment.directory, log, buffer)
    with use_local_tables(plan.resources, plan.context()):
        for step in script:
            yield from run.run_step(step)
        yield from run.check_end(case.parsed, lambda: find_dropped(plan, script))


def _find_buffer(plan: Plan, label: str) -> str:
    """Return the label of the buffer whose results a case lists; empty for those of the outputs."""
    labels = [one.label for one in plan.buffers]
    if label and label not in labels:
        known = f"the labels are {', '.join(labels)}" if labels else "the config has one buffer"
        raise StreamerError(f"field buffer is {label!r}, but no buffer has this label; {known}")
    return label


class _CaseRun:
    """One test on its way."""

    def __init__(self, stream: ScriptedStream, directory: Path, log: RunLog, buffer: str) -> None:
        self._stream = stream
        self._buffer = buffer
        self._directory = directory
        self._log = log
        self._ex = Execution(lambda: stream.now)
        self._all: list[Batch] = []
        self._checked_count = 0
        self._late: Batch = []

    def run_step(self, step: ScriptStep) -> Iterator[Failure]:
        """Take one turn; check what has come out when the test says what that must be."""
        if step.restart:
            self._stream.restart()
        elif step.runs_batch:
            try:
                outcome = self._stream.run_micro_batch(step.time_ns, step.messages, step.ends_input)
            except RejectedError as e:
                # The stream would try this micro-batch again and again.
                yield add_place(step.place, make_failure(str(e)))
                return
            self._all += outcome.by_buffer[self._buffer] if self._buffer else outcome.batches
            self._late += outcome.dropped
        if step.expected is not None:
            since = self._all[self._checked_count :]
            self._checked_count = len(self._all)
            yield from (
                add_place(step.place, one) for one in self._compare_batches(step.expected, since)
            )

    def check_end(self, case: ParsedFields, drops: Callable[[], DroppedLines]) -> Iterator[Failure]:
        """Check what has come out in the whole test; `drops` finds what was dropped."""
        batches = self._all
        if not case.is_given("output_batches"):
            # Steps have listed what they expect; nothing else may have come out.
            batches = batches[self._checked_count :]
        expected = case["output_batches"] or ()
        yield from self._compare_batches(expected, batches)
        if case.is_given("late_output"):
            yield from self._check_late_output(case["late_output"] or ())
        if case.is_given("dropped"):
            counts = self._stream.snapshot.dropped
            yield from _check_dropped(case["dropped"] or {}, counts, drops)

    def _compare_batches(self, expected: Expected, batches: list[Batch]) -> Iterator[Failure]:
        hint: list[Line] = []
        if len(batches) < len(expected):
            counts = [Throughput(*one) for one in self._stream.processor_counts()]
            hint = [
                Line(f"  {describe_open_windows(self._stream)}"),
                *self._log.describe(counts),
            ]
        return check_batches(expected, batches, self._directory, self._ex, hint)

    def _check_late_output(self, expected: tuple[ParsedFields, ...]) -> Iterator[Failure]:
        if len(self._late) < len(expected):
            counts = f"expected {len(expected)}, got {len(self._late)}"
            yield make_failure(f"late_output: wrong message count, {counts}")
        yield from check_messages(expected, self._late, "late_output ", self._directory, self._ex)


def _check_dropped(
    expected: Mapping[str, int], counts: Mapping[str, int], drops: Callable[[], DroppedLines]
) -> Iterator[Failure]:
    for reason in sorted({*expected, *counts}):
        expected_count, count = expected.get(reason) or 0, counts.get(reason, 0)
        if expected_count != count:
            shown = drops().get(reason, [])
            yield make_failure(
                f"dropped messages, reason {reason}",
                [*format_pair(str(expected_count), str(count)), *shown],
            )
