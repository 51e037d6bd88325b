"""The search for messages that end a worker, with real crashes in forked processes."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.stage.crash_search import (
    CRASH_INSTRUCTIONS,
    CrashInstructions,
    WorkerCrashesError,
    make_crash_search,
    parse_crashes,
    strip_crash_data,
)
from streamer.engine.stage.task_input import run_chunk
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.replayable import Chunk, RawMessages
from streamer.sdk.processing import instrument
from streamer.sdk.processing.crashes import Crash
from streamer.sdk.spec import Kind, ParsedComponent

SEGFAULT = b"segfault"
PART = "3"


def crash(raw: bytes) -> None:
    if raw == SEGFAULT:
        ctypes.string_at(0)
    if raw == b"kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if raw == b"memory":
        bytearray(1 << 46)
    if raw == b"leave":
        raise SystemExit(3)


class Crashing:
    """Ends the process for some messages."""

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        for message in batch:
            crash(message.raw)
        return [[message.with_bytes(message.raw + b"!") for message in batch]]


class Doubling:
    """Makes two batches of each."""

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        return [[Message(b"ok")], batch]


class Lazy(Message):
    """Ends the process when it is written."""

    @property
    def raw(self) -> bytes:
        crash(SEGFAULT)
        return b""


class Lazily:
    """Makes what ends the process behind it."""

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        return [[Lazy(b"x") if message.raw == SEGFAULT else message for message in batch]]


def processors(*made: object) -> list:
    return [
        instrument(one, ComponentRef(ParsedComponent(Kind.PROCESSOR, "x", f"l{n}", path=f"p.{n}")))
        for n, one in enumerate(made)
    ]


class Said:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict]] = []
        self.counts: list[tuple[str, int]] = []
        self.ex = Execution(
            lambda: 0,
            lambda *line: self.lines.append(line),
            lambda name, by=1, **labels: self.counts.append((name, by)),
        )


@pytest.fixture
def order() -> Iterator[Callable[[CrashInstructions | None], None]]:
    yield CRASH_INSTRUCTIONS.set
    CRASH_INSTRUCTIONS.set(None)


def results(chunks: list[Chunk], made: list, said: Said, first: int = 0) -> list:
    said.ex.crashes = make_crash_search(PART, first)
    read = said.ex.crashes.raise_at_end(chunks)
    return [
        (message.raw, message.error)
        for chunk in read
        for batch in run_chunk(made, chunk, said.ex)
        for message in batch
    ]


def raws(*payloads: bytes) -> list[Chunk]:
    return [RawMessages(list(payloads), {})]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (SEGFAULT, "SIGSEGV"),
        (b"kill", "SIGKILL"),
        (b"memory", "it takes more memory than there is"),
        (b"leave", "exit code 78"),
    ],
)
def test_each_way_to_end_a_process_is_found_and_named(raw, reason, order) -> None:
    order(CrashInstructions(search=True))
    said = Said()
    with pytest.raises(WorkerCrashesError) as found:
        results(raws(b"a", raw, b"b"), processors(Crashing()), said)
    [crash] = found.value.crashes
    assert crash == Crash(PART, "", 1, "root.p.0", "l0", 1, reason, len(raw), raw.decode())
    assert (said.lines, said.counts) == ([], [])  # a search says nothing


def test_what_was_found_passes_as_failed_and_all_else_as_ever(order) -> None:
    said = Said()
    given = [*raws(b"a", SEGFAULT, b"b"), *raws(b"c", SEGFAULT)]
    order(CrashInstructions(search=True))
    with pytest.raises(WorkerCrashesError) as found:
        results(given, processors(Doubling(), Crashing()), said, first=10)
    # As it goes to the driver and comes back.
    known = parse_crashes(f"py4j: {found.value.failure.text}\n more")
    assert [crash.number for crash in known] == [11, 14]
    assert {(crash.path, crash.call) for crash in known} == {("root.p.1", 2)}
    order(CrashInstructions.from_json(CrashInstructions(True, known).to_json()))
    made = results(given, processors(Doubling(), Crashing()), said, first=10)
    assert [raw for raw, _ in made] == [
        *(b"ok!", b"a!", b"ok!", SEGFAULT, b"ok!", b"b!"),
        *(b"ok!", b"c!", b"ok!", SEGFAULT),
    ]
    errors = [error for _, error in made if error]
    assert errors == ["the process that works on it ends (SIGSEGV)"] * 2
    assert (errors[0].path, errors[0].label) == ("p.1", "l1")
    level, text, fields = said.lines[0]
    assert (level, fields["sample"], fields["size"]) == ("ERROR", "segfault", 8)
    assert ("processor_crashed", 1) in said.counts
    # Elsewhere, the same numbers are other messages.
    order(CrashInstructions(False, known))
    made = results(raws(b"a", b"b"), processors(Crashing()), said, first=0)
    assert made == [(b"a!", None), (b"b!", None)]


def test_whole_batches_are_found_as_such(order) -> None:
    order(CrashInstructions(search=True))
    said = Said()
    batches: list[Chunk] = [[[Message(b"a")], [Message(b"b"), Message(SEGFAULT)]]]
    with pytest.raises(WorkerCrashesError) as found:
        results(batches, processors(Crashing()), said)
    order(CrashInstructions(False, found.value.crashes))
    made = results(batches, processors(Crashing()), said)
    assert [(raw, error is None) for raw, error in made] == [
        *((b"a!", True), (b"b", False), (SEGFAULT, False)),
    ]


def test_without_a_crash_all_is_processed_at_once(order) -> None:
    order(CrashInstructions(search=True))
    made = results(raws(b"a", b"b"), processors(Crashing()), Said())
    assert made == [(b"a!", None), (b"b!", None)]


def test_what_ends_the_process_in_no_processor_is_found_once(order) -> None:
    said = Said()
    order(CrashInstructions(search=True))
    with pytest.raises(WorkerCrashesError) as found:
        results(raws(b"a", SEGFAULT), processors(Lazily()), said)
    [crash] = found.value.crashes
    assert (crash.path, crash.number) == ("", 1)
    order(CrashInstructions(True, (crash,)))
    made = results(raws(b"a", SEGFAULT), processors(Lazily()), said)
    assert [raw for raw, _ in made] == [b"a", SEGFAULT]
    assert made[1][1] == "the process that works on it ends (SIGSEGV)"


def test_people_do_not_read_the_list() -> None:
    error = WorkerCrashesError([Crash("0", "", 1, "root.a", "", 1, "SIGSEGV", 1, "x")])
    assert strip_crash_data(error.failure.text) == "a message ends its worker (SIGSEGV)"
    assert parse_crashes("nothing") == ()
