"""Runs a stream of windows between Kafka and a sink, and lets a row do its worst meanwhile."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.faults.program import Program
from tests.proof.chronicle import Chronicle
from tests.proof.generator import HUGE, Shape, Source
from tests.proof.kinds import Hopping, Walled, Windows
from tests.proof.oracle import Expected
from tests.proof.sinks import Sink, whole_lines
from tests.proof.stream import TOPIC, Stream
from tests.proof.verdict import Output, ProofError, compare
from tests.servers.kafka import Broker
from tests.servers.namespaces import Hosts
from tests.servers.spark_cluster import Cluster

PATIENCE = 240.0
_SOON = "-XX:TieredStopAtLevel=1"
"""For Java: code that is compiled fast, and once. What optimising costs comes back in minutes, and
a short run ends before: it would be most of what two cores do."""


@dataclass(frozen=True)
class Length:
    """How long a run is.

    Attributes:
        long: whether there is time for many injections.
        times: how often a row that repeats itself does its worst.
        soon: Java compiles fast and once.
    """

    long: bool
    times: int
    soon: bool


SHORT = Length(long=False, times=1, soon=True)
LONG = Length(long=True, times=20, soon=False)


@dataclass
class Run:
    """A stream under test: its parts, and what a row may do to them.

    Attributes:
        rng: decides when and what is broken.
        seed: of this row, decides the events too.
        length: how much happens.
        sink: where windows go.
        cluster: where it runs; None for this machine.
        options: what the program is started with.
        env: variables that it is started with.
        injected: what was done, for the table.
        gone: events, by partition and offset, that Kafka lost before they were read.
    """

    directory: Path
    seed: int
    length: Length
    broker: Broker
    sink: Sink
    windows: Windows = field(default_factory=Hopping)
    shape: Shape = field(default_factory=Shape)
    cluster: Cluster | None = None
    options: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    injected: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.late = self.directory / "late.jsonl"
        self.checkpoint = self.directory / "checkpoint"
        self.config = self.directory / "config.yaml"
        self.late.touch()
        self.stream = Stream(self.broker.address(), self.windows, self.sink.config(), self.late)
        java = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
        self.configure(conf=dict.fromkeys(java, _SOON) if self.length.soon else {})
        if (on := self.cluster) is not None:
            self.configure(master=on.url, environment="installed", conf=on.conf)
        kafka = self.broker.client()
        kafka.create(TOPIC, self.shape.partitions, max_message_bytes=2 * HUGE)
        self.source = Source(kafka, TOPIC, self.seed, self.shape)
        self.chronicle = Chronicle(self.checkpoint, TOPIC)
        self.running: Program | None = None
        self.gone: frozenset[tuple[int, int]] = frozenset()

    def configure(self, conf: Mapping[str, str] = MappingProxyType({}), **changes: Any) -> None:
        """Write the config, as an editor does: beside it, then over it.

        Args:
            conf: settings of Spark, beside those that are there.
            changes: fields of `Stream`.
        """
        self.stream = replace(self.stream, conf={**self.stream.conf, **conf}, **changes)
        draft = self.config.with_suffix(".tmp")
        draft.write_text(self.stream.config())
        draft.replace(self.config)

    @property
    def hosts(self) -> Hosts | None:
        """The hosts of the cluster, when it has some of its own."""
        return self.cluster.hosts if self.cluster is not None else None

    @property
    def long(self) -> bool:
        """Whether there is time for many injections."""
        return self.length.long

    @property
    def times(self) -> int:
        """How often a row that repeats itself does its worst."""
        return self.length.times

    @property
    def program(self) -> Program:
        """The program, which runs."""
        assert self.running is not None, "the program does not run"
        return self.running

    def start(self) -> Program:
        """Start the program, for the first time or where it was."""
        before, env = list[str](), dict(self.env)
        if (net := self.hosts) is not None:
            before, env["SPARK_LOCAL_IP"] = net.inside("driver"), net.address("driver")
        self.running = Program(self.config, self.checkpoint, *self.options, before=before, env=env)
        return self.running

    def kill(self) -> None:
        """Kill the driver as a machine does that loses its power."""
        self.program.kill()
        self.running = None

    def stop(self) -> int:
        """Stop the program in order; return its exit code."""
        code = self.program.stop()
        self.running = None
        return code

    def size(self) -> int:
        """Return how much of the output readers see."""
        return self.sink.size()

    def wait_for(self, what: Callable[[], bool], why: str) -> None:
        """Wait while the program runs."""
        self.program.wait_for(what, PATIENCE, why)

    def wait_for_output(self) -> None:
        """Wait until more windows come out."""
        before = self.size()
        self.wait_for(lambda: self.size() > before, "for windows")

    def pause(self, least: float, most: float) -> None:
        """Let some time pass, which the seed decides."""
        time.sleep(self.rng.uniform(least, most))

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Keep all parts until the block ends, then end those that are left."""
        try:
            with self.chronicle.kept():
                yield
        finally:
            if self.running is not None:
                self.running.close()

    def settle(self) -> str:
        """Close all windows, let everything come out, stop, and give the verdict."""
        self.source.flush()
        self.wait_for_all()
        self._close_windows()
        last = self.program
        if self.stop() != 0:
            raise ProofError(f"SIGTERM: exit code is not 0: {last.messages()[-5:]}")
        farewell = last_words(last)
        sent = {at: one for at, one in self.source.sent.items() if at not in self.gone}
        micro_batches = self.chronicle.micro_batches()
        expected = self.windows.replay(sent, micro_batches, self.gone)
        self._check_reach(expected)
        output = Output(self.sink.windows(), whole_lines(self.late), farewell)
        figures = compare(sent, expected, output, self.sink.repeats)
        return f"{figures}; {', '.join(self.injected)}" if self.injected else figures

    def _close_windows(self) -> None:
        """Let the clock of the windows pass them: that of the events, or that on the wall."""
        if isinstance(self.windows, Walled):
            over = self.windows.over(max(one.at or 0 for one in self.source.sent.values()))
            self.wait_for(lambda: self.chronicle.time() >= over, "for the clock to close windows")
        else:
            self.source.close_windows()
            self.wait_for_all()

    def wait_for_all(self) -> None:
        """Wait until all that was sent so far is taken in."""
        self.wait_for_taken(self.source.ends())

    def wait_for_taken(self, ends: Mapping[int, int]) -> None:
        """Wait until everything before these offsets of the partitions is taken in."""

        def taken() -> bool:
            found = self.chronicle.taken()
            return all(found.get(partition, 0) >= end for partition, end in ends.items())

        self.wait_for(taken, "for all events to be taken in")

    def _check_reach(self, expected: Expected) -> None:
        """Hold that the run was one that could fail."""
        if len(expected.closed) < 20 or self.windows.drops > bool(expected.dropped):
            raise ProofError(f"too little has happened: {len(expected.closed)} windows")


def last_words(program: Program) -> dict[str, Any]:
    """Return what a program that was stopped has counted: messages, dropped, held."""
    return next(line for line in reversed(program.lines()) if "messages" in line)


Fault = Callable[[Run], None]


def under_load(run: Run, fault: Fault) -> str:
    """Let a fault happen to a stream that has windows coming out; give the verdict."""
    with run.whole():
        run.start().wait_running()
        with run.source.flowing():
            run.wait_for_output()
            fault(run)
            run.wait_for_output()
        return run.settle()
