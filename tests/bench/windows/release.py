"""How long a large window takes to be released, and what it weighs on disk meanwhile.

The window fills from the standard input. Then comes an event for it, and then one beyond its end:
the one measures what any micro-batch takes, the other what it takes with the release.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from tests.bench import answers, report, traffic
from tests.bench.jobs import GROUPS
from tests.bench.product import Product, product, size_of
from tests.bench.windows import jobs, measure
from tests.bench.windows.settings import Settings

SIZE = 3_600
ORIGIN = 1_767_225_600
CALM = 4.0
"""Seconds that the commit, and the collectors, are given."""

CONF = """  conf:
    spark.sql.streaming.stateStore.maintenanceInterval: 2s
    spark.sql.streaming.minBatchesToRetain: "2"
"""
"""Spark soon lets go of the state of all micro-batches but two, so that what is measured is what
the window weighs. The program keeps twenty, and Spark clears up once a minute: by then a window
that has filled in a minute has all its packs on disk that were joined meanwhile."""

_SETTLED, _LOOK, _MOST = 8.0, 1.0, 120.0
"""Seconds in which the size on disk must not change, between looks at it, and of looking."""


def release(work: Path, wanted: Settings) -> None:
    """Measure sums and counts, then distinct counts, then the same with whole messages."""
    report.heading(
        f"release: a window of {SIZE} s with {wanted.held:,} events in {traffic.LIGHTS:,} groups, "
        f"stdin → file, {wanted.master}"
    )
    paths = write(work / "files", wanted.held)
    for name, distinct, most in (("sums and counts", False, 1.0), ("distinct counts", True, 3.0)):
        one = _Filled(name, work / "run", paths, wanted, distinct=distinct)
        report.figure(f"{name}, a micro-batch with the release", one.releasing, "s", most=most)
        report.figure(f"{name}, a micro-batch without", one.plain, "s")
        report.figure(f"{name}, the release alone", one.releasing - one.plain, "s")
        _weigh(name, one, wanted.held)
        folded = one.state
    whole = _Filled("whole messages", work / "run", paths, wanted, distinct=True, whole=True)
    report.figure("whole messages, the release", whole.releasing, "s")
    _weigh("whole messages", whole, wanted.held)
    report.figure("state, distinct counts / whole", folded / whole.state, "", most=1 / 3)
    shutil.rmtree(work)


def _weigh(name: str, one: _Filled, events: int) -> None:
    report.figure(f"{name}, state on disk for an event", one.state / events, "bytes")
    report.figure(f"{name}, before Spark clears up", one.at_once / events, "bytes")


def write(directory: Path, events: int) -> list[Path]:
    """Write the events of the window, another one of it, and one beyond it."""
    pace = 2 * events / SIZE
    directory.mkdir(parents=True)
    paths = [directory / f"{name}.jsonl" for name in ("1-filling", "2-plain", "3-beyond")]
    for path, count, origin in zip(
        paths, (events, 1, 1), (ORIGIN, ORIGIN + SIZE - 1, ORIGIN + SIZE), strict=True
    ):
        with path.open("wb") as out:
            out.writelines(traffic.chunks(count, origin, pace, seed=count))
    return paths


def differences(paths: Iterable[Path], distinct: bool, lines: Iterable[bytes]) -> str:
    """Compare lines with what the windows of some files hold."""
    want = answers.expected(answers.read(paths), SIZE, SIZE, closed="left", distinct=distinct)
    return answers.differences(want, answers.given(lines))


class _Filled:
    """A run: a window that fills and is released.

    Attributes:
        plain: seconds from an event's arrival until its micro-batch is delivered.
        releasing: the same of an event that closes the window.
        at_once: bytes on disk of the full window, with what is left of old micro-batches.
        state: the same when Spark has let go of them.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        paths: list[Path],
        wanted: Settings,
        *,
        distinct: bool,
        whole: bool = False,
    ) -> None:
        filling, plain, beyond = paths
        out = directory / "out.jsonl"
        pipeline = GROUPS if distinct else jobs.COUNTED
        buffer = jobs.together(SIZE)
        config = jobs.from_stdin(buffer, pipeline, out, wanted.master, whole=whole)
        config += CONF
        report.note(f"{name}: {measure.kept(config, directory.with_suffix('.yaml'))}")
        with product(config, directory, stdin=subprocess.PIPE) as run:
            run.wait_for_start(120)
            threading.Thread(target=_send, args=(run, filling), daemon=True).start()
            run.wait_for_messages(wanted.held, 120 + wanted.held / 10_000)
            kept = run.checkpoint / "spark" / "state"
            self.at_once = max(size for _, size in run.state)
            self.state = _settled(kept)
            self.plain = _until_taken(run, plain, wanted.held + 1)
            time.sleep(CALM)
            self.releasing = _until_taken(run, beyond, wanted.held + 2)
            assert run.process.stdin is not None
            run.process.stdin.close()
            run.wait(120)

        def check(lines: Iterable[bytes]) -> str:
            return differences(paths, distinct, lines)

        measure.accept(name, check, [out], run)
        shutil.rmtree(directory)


def _send(run: Product, path: Path) -> None:
    """Write lines to the program's standard input."""
    assert run.process.stdin is not None
    with path.open("rb") as file:
        shutil.copyfileobj(file, run.process.stdin, 1 << 20)
    run.process.stdin.flush()


def _settled(directory: Path) -> int:
    """Return the size of a directory once it stays the same."""
    began = same_since = time.monotonic()
    size = size_of(directory)
    while time.monotonic() - same_since < _SETTLED and time.monotonic() - began < _MOST:
        time.sleep(_LOOK)
        now = size_of(directory)
        if now != size:
            size, same_since = now, time.monotonic()
    return size


def _until_taken(run: Product, path: Path, messages: int) -> float:
    began = time.time()
    _send(run, path)
    run.wait_for_messages(messages, 300)
    return next(d.at for d in run.delivered if d.messages >= messages) - began
