"""Events on the standard input: when a mapping's lines, and windows, come out of a pipe.

What sends is an open loop (`tests.bench.load.feeder`). A line's latency begins with the time of its
event, a window's with its close.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench import report
from tests.bench.latency import benthos
from tests.bench.latency.figures import Latency
from tests.bench.load.feeder import Feeder, Pipe, feeding
from tests.bench.load.live import Came, Live, Reader, quantile, warm_up
from tests.bench.process_tree import Tree
from tests.bench.product import product

RATES = (1, 20.0), (100, 10.0), (1_000, 10.0), (20_000, 10.0)
"""Events a second of the stateless stream, and for how many seconds."""

WINDOW_RATES = 100, 1_000
SIZES = 1, 10, 60
_CLOSES = {1: 10, 10: 2, 60: 1}
_LATE_SHARE = 0.01
"""Of a busy machine's events some are on their way for longer than `system_window` waits."""
_WARM_UP_RATE = 100.0
_WARM_UP_S = {1: 15.0, 10: 10.0, 60: 0.0}
"""Java compiles code that was run some hundred times: micro-batches cost twice as much before. By
the size of windows; the first of a longer one is waited for besides."""
_BESIDE_SIZE = 10
"""Windows of so many seconds, and longer ones, are measured with keys and without at once."""
_FIRST_END_S = 35
"""Seconds from the start of the first kind to the end of its first window, where windows are long:
so the bench need not wait for the turn of the minute."""
_NEXT_KIND_S = 5
"""Seconds by which the ends of the next kind's windows come later, when the first has delivered."""
_SETTLE_S = 2.0
_ARRIVES_S = 30.0

_LATENESS_S = 0.1
"""`system_window` waits so long for events that are on their way: a window closes then."""

_PASSING = """
http: { enabled: false }
input: { stdin: {} }
pipeline:
  processors:
    - mapping: |
        root.at = this.created_at
        root.passengers = this.passengers
output: { stdout: {} }
"""
_PASSED = re.compile(rb'"at":"([^"]+)",("passengers")')

_WINDOWS = """
http: {{ enabled: false }}
input: {{ stdin: {{}} }}
buffer:
  {buffer}
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{
          {{
            "end": meta("window_end_timestamp"),
            "events": batch_size(),
            "passengers": json("passengers").from_all().sum(),
          }}
        }} else {{ deleted() }}
output: {{ stdout: {{}} }}
"""
_CLOSED = re.compile(rb'"end":"([^"]+)","events":(\d+)')
_KEYED = """tumbling_window:
    timestamp_mapping: root = this.created_at
    key_mapping: root = this.traffic_light
    size: {size}s
    offset: {offset}s"""
_UNKEYED = """system_window:
    timestamp_mapping: root = this.created_at
    allowed_lateness: {lateness:.0f}ms
    size: {size}s
    offset: {offset}s"""


@dataclass(frozen=True)
class Fed:
    """A program between what sends and what reads.

    Attributes:
        feeder: what sends.
        reader: what reads its output.
    """

    feeder: Feeder
    reader: Reader


@dataclass(frozen=True)
class Kind:
    """A kind of window that is measured.

    Attributes:
        name: in words.
        buffer: its text in a config.
        delay: seconds from the end of a window to its close.
    """

    name: str
    buffer: str
    delay: float


KINDS = (
    Kind("without keys, by the clock", _UNKEYED, _LATENESS_S),
    Kind("of 1,000 keys, by event time", _KEYED, 0.0),
)


def passing_of_product(work: Path, master: str) -> list[Latency]:
    """Measure a mapping in the product, at each rate; see that nothing is lost."""
    config = _PASSING + f'spark: {{master: "{master}"}}\n'
    with _piped(config, work, _PASSED, is_counted=True) as running:
        found = []
        for rate, seconds in RATES:
            span = _feed_for(running.feeder, running.reader, rate, seconds)
            running.check()
            found.append(_of_lines("streamer", rate, span, running, running.stream.tree))
    return found


def passing_of_benthos(program: Path, work: Path) -> list[Latency]:
    """Measure the same in Benthos."""
    pipe = work / "events"
    with (
        _opened(pipe) as stdin,
        benthos.running(
            program, _PASSING, work / "run", stdin=stdin, stdout=subprocess.PIPE
        ) as peer,
        feeding(Pipe(pipe), 1) as feeder,
    ):
        assert peer.process.stdout is not None
        reader = Reader(peer.process.stdout.fileno(), _PASSED)
        found = []
        for rate, seconds in RATES:
            span = _feed_for(feeder, reader, rate, seconds)
            found.append(_of_lines("Benthos", rate, span, Fed(feeder, reader), peer.tree))
    return found


def windows(work: Path, size: int, master: str) -> list[Latency]:
    """Measure windows of a size, with keys and without; long ones beside each other."""
    found: list[list[Latency]] = [[] for _ in KINDS]
    errors: list[Exception] = []
    began = time.time()

    def measure(at: int) -> None:
        offset = 0
        if size >= _BESIDE_SIZE:
            offset = round(began + _FIRST_END_S + at * _NEXT_KIND_S) % size
        try:
            found[at] = _windows_of(work / f"kind-{at}", KINDS[at], size, offset, master)
        except RuntimeError as e:
            errors.append(e)

    if size < _BESIDE_SIZE:
        for at in range(len(KINDS)):
            measure(at)
    else:
        _run_together([lambda at=at: measure(at) for at in range(len(KINDS))])  # type: ignore[misc]
    if errors:
        raise errors[0]
    return [one for kind in found for one in kind]


def _run_together(works: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=one) for one in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _windows_of(work: Path, kind: Kind, size: int, offset: int, master: str) -> list[Latency]:
    text = kind.buffer.format(size=size, offset=offset, lateness=kind.delay * 1e3)
    config = _WINDOWS.format(buffer=text) + f'spark: {{master: "{master}"}}\n'
    found = []
    # What is left in a window of a minute would come out a minute later.
    is_counted = size < max(SIZES)
    began = time.monotonic()
    with _piped(config, work, _CLOSED, size, is_counted=is_counted) as running:
        for rate in WINDOW_RATES:
            report.note(
                f"windows of {size} s {kind.name}: after {time.monotonic() - began:.0f} s, "
                f"{rate:,} events/s"
            )
            running.feeder.rate.value = float(rate)
            first = time.time() + _SETTLE_S
            ends = [(first - offset) // size * size + offset + size * (1 + n) for n in range(99)]
            last = ends[_CLOSES[size] - 1] + kind.delay
            time.sleep(max(0.0, last + 1.0 - time.time()))
            running.check()
            span = first, last + 0.5
            found.append(_of_windows(kind, size, rate, span, running))
    return found


def _of_windows(
    kind: Kind, size: int, rate: int, span: tuple[float, float], running: Live
) -> Latency:
    until = time.time() + 30
    last = span[1] - 0.5 - kind.delay
    while running.reader.newest() < last and time.time() < until:
        running.check()
        time.sleep(0.05)
    time.sleep(0.5)
    came = [one for one in running.reader.came if span[0] <= one.due <= last]
    if not came:
        raise RuntimeError(f"no window of {size} s came out{running.stream.course()}")
    return Latency(
        "streamer",
        "windows",
        f"windows of {size} s {kind.name}, {rate:,} events/s",
        rate,
        quantile(came, 0.5) - kind.delay,
        quantile(came, 0.99) - kind.delay,
        _cores(running.stream.tree, span),
        sum(one.lines for one in came),
        size,
    )


def _feed_for(feeder: Feeder, reader: Reader, rate: int, seconds: float) -> tuple[float, float]:
    """Send at a rate; return from when to when events are measured, once all have come out."""
    feeder.rate.value = float(rate)
    time.sleep(_SETTLE_S)
    first, feeder.late.value = time.time(), 0.0
    time.sleep(seconds)
    last = time.time()
    until = time.time() + _ARRIVES_S
    while reader.newest() < last - 1.5 / min(rate, 50) and time.time() < until:
        time.sleep(0.02)
    return first, last


def _of_lines(
    program: str, rate: int, span: tuple[float, float], fed: Fed | Live, tree: Tree
) -> Latency:
    time.sleep(1.5)
    came = [one for one in fed.reader.came if span[0] <= one.due <= span[1]]
    if not came:
        raise RuntimeError(f"{program}: nothing came at {rate:,} events a second")
    p50, p99, lines = quantile(came, 0.5), quantile(came, 0.99), _count(came)
    name = f"a mapping, {rate:,} events/s"
    late = fed.feeder.late.value
    return Latency(
        program, "stateless", name, rate, p50, p99, _cores(tree, span), lines, fed_late=late
    )


def _count(came: Sequence[Came]) -> int:
    return sum(one.lines for one in came)


def _cores(tree: Tree, span: tuple[float, float]) -> float:
    return (tree.cpu_at(span[1]) - tree.cpu_at(span[0])) / (span[1] - span[0])


@contextmanager
def _piped(
    config: str, work: Path, pattern: re.Pattern[bytes], size: float = 0.0, *, is_counted: bool
) -> Iterator[Live]:
    """Run a stream from a pipe to a pipe.

    Args:
        config: the stream's.
        work: a directory that does not exist yet.
        pattern: of a line that comes out.
        size: seconds of a window.
        is_counted: at the end see that each event came out, once.
    """
    pipe = work / "events"
    with (
        _opened(pipe) as stdin,
        product(config, work / "run", stdin=stdin, stdout=subprocess.PIPE) as stream,
    ):
        assert stream.process.stdout is not None
        reader = Reader(stream.process.stdout.fileno(), pattern)
        with feeding(Pipe(pipe), 1) as feeder:
            running = Live(stream, feeder, reader)
            warm_up(running, 10.0 + size)
            feeder.rate.value = _WARM_UP_RATE
            time.sleep(_WARM_UP_S.get(size, _WARM_UP_S[1]))
            yield running
            feeder.rate.value = 0.0
        if is_counted:
            running.check_account(_LATE_SHARE)


@contextmanager
def _opened(pipe: Path) -> Iterator[int]:
    """Make a named pipe; give a descriptor to read it."""
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    # It is a writer as well: so the input does not end with what sends.
    reader = os.open(pipe, os.O_RDWR)
    try:
        yield reader
    finally:
        os.close(reader)
