"""The disk of the machine, and the sink that a stream writes to."""

from __future__ import annotations

import shutil
from contextlib import suppress

from tests.faults.vitals import vitals
from tests.proof.runner import Run, last_words, under_load
from tests.proof.sinks import HttpSink
from tests.proof.verdict import ProofError, accounted
from tests.servers.disks import small_disk

_DISK = 48 << 20
_MOST = 700
"""MB by which the program may grow while its sink is dead: its JVM may still take its heap."""
_PAST = 6.0
"""Seconds after which windows of a second are out."""


def disk_full(run: Run) -> str:
    """Fill the disk of the checkpoint; make room again."""
    run.checkpoint.mkdir()
    with small_disk(run.checkpoint, _DISK):
        ballast = run.checkpoint / "ballast"

        def fault(run: Run) -> None:
            for _ in range(run.times):
                run.pause(0, 3)
                told = _told(run, "is full")
                with ballast.open("wb") as out, suppress(OSError):
                    free = shutil.disk_usage(run.checkpoint).free
                    out.write(bytes(free - free % 4096))
                run.wait_for(lambda told=told: _told(run, "is full") > told, "to say it is full")
                ballast.unlink()
                run.wait_for_output()
                run.wait_for_output()
            run.injected.append(f"{run.times} times full, named {_told(run, 'is full')} times")

        return under_load(run, fault)


def _told(run: Run, words: str) -> int:
    return sum(words in text for text in run.program.messages())


def dead_sink(run: Run) -> str:
    """Let the sink refuse everything for a while: the input waits, and so does memory."""

    def fault(run: Run) -> None:
        for _ in range(2 if run.long else 1):
            _refused(run, *((60, 90) if run.long else (10, 15)))

    return under_load(run, fault)


def slow_sink(run: Run) -> str:
    """Let the sink take two windows a second, of five times as many: the input waits."""
    sink = run.sink
    assert isinstance(sink, HttpSink)
    sink.fields = ", max_in_flight: 1"
    run.configure(sink=sink.config())

    def fault(run: Run) -> None:
        for _ in range(4 if run.long else 1):
            _slowed(run, sink)

    return under_load(run, fault)


def _slowed(run: Run, sink: HttpSink) -> None:
    """Let the sink be slow for some seconds; hold that what is not taken waits in Kafka."""
    run.pause(0, 3)
    before = vitals(run.program.process.pid).memory
    written, waited = sink.written(), _waiting(run)
    sink.pause = 0.5
    run.pause(15, 20)
    written, waits = sink.written() - written, _waiting(run)
    grown = vitals(run.program.process.pid).memory - before
    sink.pause = 0.0
    if waits <= waited:
        raise ProofError(f"the sink was slow, but no more waits than before: {waits:,} events")
    if grown > _MOST:
        raise ProofError(f"it grew by {grown:.0f} MB while the sink was slow")
    run.wait_for(lambda: _waiting(run) < waits / 2, "to make up for it")
    run.injected.append(
        f"{written} windows meanwhile, {waited:,} to {waits:,} events waited, {grown:+.0f} MB"
    )


def _waiting(run: Run) -> int:
    return sum(run.source.ends().values()) - sum(run.chronicle.taken().values())


def expired(run: Run) -> str:
    """Let the sink refuse everything for so long that windows of the clock on the wall expire."""
    window = {"timestamp_mapping": "root = now()", "size": "1s", "expire_after": "5s"}
    run.configure(buffer={"system_window": window})
    with run.whole():
        run.start().wait_running()
        with run.source.flowing():
            run.wait_for_output()
            for _ in range(run.times):
                _refused(run, 10, 15)
        run.source.flush()
        run.wait_for_all()
        # All are over by the clock on the wall when a window after them would be.
        run.pause(_PAST, _PAST)
        last = run.program
        if run.stop() != 0:
            raise ProofError(f"SIGTERM: exit code is not 0: {last.messages()[-5:]}")
        sent = {one.id for one in run.source.sent.values()}
        figures = accounted(sent, run.sink.windows(), last.lines(), last_words(last))
        return f"{figures}; {', '.join(run.injected)}"


def _refused(run: Run, least: float, most: float) -> None:
    """Let the sink refuse everything for some seconds; hold that nothing piles up meanwhile."""
    sink = run.sink
    assert isinstance(sink, HttpSink)
    run.pause(0, 3)
    before = vitals(run.program.process.pid).memory
    refused, sink.refuses = sink.refused, True
    run.wait_for(lambda: sink.refused > refused, "for the sink to be asked")
    run.pause(1, 2)  # one micro-batch may have been on its way
    planned = run.chronicle.planned()
    run.pause(least, most)
    if run.chronicle.planned() > planned + 1:
        raise ProofError("it reads on though nothing can be written")
    grown = vitals(run.program.process.pid).memory - before
    if grown > _MOST:
        raise ProofError(f"it grew by {grown:.0f} MB while the sink was dead")
    sink.refuses = False
    run.wait_for_output()
    run.wait_for_output()
    run.injected.append(f"{sink.refused - refused} refused, {grown:+.0f} MB meanwhile")
