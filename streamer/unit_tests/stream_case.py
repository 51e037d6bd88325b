"""A test of a whole stream, from its buffer on, on a scripted clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from streamer.config.definitions import Case
from streamer.engine.rejected_frames import RejectedError
from streamer.engine.scripted import ScriptedStream
from streamer.message import Batch, Execution
from streamer.plan import make_plan
from streamer.spec import Parsed
from streamer.unit_tests.batches import Expected, check_batches, check_messages
from streamer.unit_tests.failure import Failure, at, failure, pair
from streamer.unit_tests.hints import Drops, dropped_by, still_open
from streamer.unit_tests.script import Turn, turns
from streamer.unit_tests.surroundings import Surroundings


def check_stream(case: Case, around: Surroundings) -> Iterator[Failure]:
    """Run a case's steps; return what is wrong with what comes out, step by step, then in all.

    Raises:
        StreamerError: the case cannot be run: there is something wrong with the config, a mock or
            a file.
    """
    plan = make_plan(around.open(case).config(), around.level)
    script = list(turns(case.parsed, around.directory))
    run = _Run(ScriptedStream(plan, around.tell), around.directory)
    for turn in script:
        yield from run.turn(turn)
    yield from run.end(case.parsed, lambda: dropped_by(plan, script))


class _Run:
    """One test on its way."""

    def __init__(self, stream: ScriptedStream, directory: Path) -> None:
        self._stream = stream
        self._directory = directory
        self._ex = Execution(lambda: stream.now)
        self._all: list[Batch] = []
        self._checked = 0
        self._late: Batch = []

    def turn(self, turn: Turn) -> Iterator[Failure]:
        """Take one turn; check what has come out when the test says what that must be."""
        if turn.restart:
            self._stream.restart()
        elif turn.runs:
            try:
                outcome = self._stream.micro_batch(turn.t, turn.sent, turn.ended)
            except RejectedError as e:
                # The stream would try this micro-batch again and again.
                yield at(turn.place, failure(str(e)))
                return
            self._all += outcome.batches
            self._late += outcome.dropped
        if turn.expected is not None:
            since = self._all[self._checked :]
            self._checked = len(self._all)
            yield from (at(turn.place, one) for one in self._compared(turn.expected, since))

    def end(self, case: Parsed, drops: Callable[[], Drops]) -> Iterator[Failure]:
        """Check what has come out in the whole test; `drops` finds what was dropped."""
        found = self._all
        if not case.given("output_batches"):
            # Steps have listed what they expect; nothing else may have come out.
            found = found[self._checked :]
        expected = case["output_batches"] or ()
        yield from self._compared(expected, found)
        if case.given("late_output"):
            yield from self._late_output(case["late_output"] or ())
        if case.given("dropped"):
            counts = self._stream.snapshot.dropped
            yield from _dropped(case["dropped"] or {}, counts, drops)

    def _compared(self, expected: Expected, found: list[Batch]) -> Iterator[Failure]:
        hint = still_open(self._stream) if len(found) < len(expected) else ""
        return check_batches(expected, found, self._directory, self._ex, hint)

    def _late_output(self, expected: tuple[Parsed, ...]) -> Iterator[Failure]:
        if len(self._late) < len(expected):
            counts = f"expected {len(expected)}, got {len(self._late)}"
            yield failure(f"late_output: wrong message count, {counts}")
        yield from check_messages(expected, self._late, "late_output ", self._directory, self._ex)


def _dropped(
    expected: Mapping[str, int], found: Mapping[str, int], drops: Callable[[], Drops]
) -> Iterator[Failure]:
    for reason in sorted({*expected, *found}):
        wanted, got = expected.get(reason) or 0, found.get(reason, 0)
        if wanted != got:
            shown = drops().get(reason, [])
            yield failure(
                f"dropped messages, reason {reason}", [*pair(str(wanted), str(got)), *shown]
            )
