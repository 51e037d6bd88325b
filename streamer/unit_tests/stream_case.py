"""A test of a whole stream, from its buffer on, on a scripted clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from streamer.config.definitions import Case
from streamer.config.target import open_target
from streamer.engine.scripted import ScriptedStream, Sent
from streamer.message import Batch, Execution
from streamer.plan import make_plan
from streamer.spec import Parsed
from streamer.timestamps import parse_event_time
from streamer.unit_tests.batches import check_batches, check_messages
from streamer.unit_tests.failure import Failure, at, failure, pair
from streamer.unit_tests.messages import make_message
from streamer.unit_tests.surroundings import Surroundings


def check_stream(case: Case, around: Surroundings) -> Iterator[Failure]:
    """Run a case's steps; return what is wrong with what comes out, step by step, then in all.

    Raises:
        StreamerError: the case cannot be run: there is something wrong with the config, a mock or
            a file.
    """
    target = open_target(around.config, around.environment(case), case.mocks, around.resource_files)
    stream = ScriptedStream(make_plan(target.config(), around.level), around.log)
    run = _Run(case.parsed, stream, around.directory)
    for number, step in enumerate(case.parsed["steps"]):
        yield from run.step(number, step)
    yield from run.end()


class _Run:
    """One test on its way."""

    def __init__(self, parsed: Parsed, stream: ScriptedStream, directory: Path) -> None:
        self._parsed = parsed
        self._stream = stream
        self._directory = directory
        self._clock = parse_event_time(parsed["clock"])
        self._ex = Execution(lambda: self._clock)
        self._all: list[Batch] = []
        self._unchecked = 0
        self._late: Batch = []

    def step(self, number: int, step: Parsed) -> Iterator[Failure]:
        """Run one step, and check what has come out when it says what that must be."""
        if step["restart"]:
            self._stream.restart()
        elif any(step.given(name) for name in ("send", "advance", "clock", "end_of_input")):
            self._micro_batch(step)
        if step.given("output_batches"):
            since = self._all[self._unchecked :]
            self._unchecked = len(self._all)
            wrong = check_batches(step["output_batches"] or (), since, self._directory, self._ex)
            place = f"step {number} [line {min(line for line, _ in _places(step))}]"
            yield from (at(place, one) for one in wrong)

    def _micro_batch(self, step: Parsed) -> None:
        if step["advance"] is not None:
            self._clock = max(self._clock, self._stream.now) + step["advance"]
        elif step["clock"] is not None:
            self._clock = parse_event_time(step["clock"])
        sent = [
            Sent(make_message(one, self._directory).with_error(one["failed"]), one["partition"])
            for one in step["send"] or ()
        ]
        outcome = self._stream.micro_batch(self._clock, sent, bool(step["end_of_input"]))
        self._all += outcome.batches
        self._late += outcome.dropped

    def end(self) -> Iterator[Failure]:
        """Check what has come out in the whole test."""
        parsed = self._parsed
        found = self._all
        if not parsed.given("output_batches"):
            # Steps have listed what they expect; nothing else may have come out.
            found = found[self._unchecked :]
        expected = parsed["output_batches"] or ()
        yield from check_batches(expected, found, self._directory, self._ex)
        if parsed.given("late_output"):
            yield from self._late_output(parsed["late_output"] or ())
        if parsed.given("dropped"):
            yield from _dropped(parsed["dropped"] or {}, self._stream.snapshot.dropped)

    def _late_output(self, expected: tuple[Parsed, ...]) -> Iterator[Failure]:
        if len(self._late) < len(expected):
            yield failure(
                f"late_output: wrong message count, expected {len(expected)}, got {len(self._late)}"
            )
        yield from check_messages(expected, self._late, "late_output ", self._directory, self._ex)


def _places(step: Parsed) -> list[tuple[int, int]]:
    return [step.place(name) for name in step if step.given(name)]


def _dropped(expected: Mapping[str, int], found: Mapping[str, int]) -> Iterator[Failure]:
    for reason in sorted({*expected, *found}):
        wanted, got = expected.get(reason) or 0, found.get(reason, 0)
        if wanted != got:
            yield failure(f"dropped messages, reason {reason}", pair(str(wanted), str(got)))
