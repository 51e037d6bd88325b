"""Runs a stream of windows between Kafka and a sink, and lets a row do its worst meanwhile."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.program import Program
from tests.proof.chronicle import Chronicle
from tests.proof.generator import GRACE, SECOND, SIZE, Shape, Source
from tests.proof.oracle import Expected, Rules, replay
from tests.proof.sinks import Sink, whole_lines
from tests.proof.verdict import Output, ProofError, compare
from tests.servers.kafka import Broker

PATIENCE = 240.0
TOPIC = "proof"

CONFIG = """
http: {{enabled: false}}
input:
  kafka:
    addresses: ["{broker}"]
    topics: [{topic}]
    consumer_group: proof
    start_from_oldest: true
    fail_on_data_loss: {whole}
buffer:
  {window}:
    timestamp_mapping: root = this.at
    key_mapping: root = this.key
    size: {size}s
    {every}
    allowed_lateness: {lateness}s
    late_output: late
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{
          {{
            "start": meta("window_start_timestamp"),
            "end": meta("window_end_timestamp"),
            "key": meta("window_key"),
            "ids": json("id").from_all(),
          }}
        }} else {{ deleted() }}
output: {sink}
output_resources:
  - label: late
    file: {{path: "{late}", codec: lines}}
    processors:
      - mapping: |
          root.reason = meta("window_drop_reason")
          root.raw = content().encode("base64").string()
spark: {{master: "local[2]"}}
"""


@dataclass(frozen=True)
class Windows:
    """Of the stream under test; the times in seconds."""

    size: int = SIZE // SECOND
    every: int = SIZE // SECOND
    lateness: int = GRACE // SECOND

    @property
    def rules(self) -> Rules:
        """The same for the oracle."""
        return Rules(self.size * SECOND, self.every * SECOND, self.lateness * SECOND)


@dataclass
class Run:
    """A stream under test: its parts, and what a row may do to them.

    Attributes:
        rng: decides when and what is broken.
        seed: of this row, decides the events too.
        long: whether there is time for many injections.
        sink: where windows go.
        injected: what was done, for the table.
        gone: events, by partition and offset, that Kafka lost before they were read.
    """

    directory: Path
    seed: int
    long: bool
    broker: Broker
    sink: Sink
    windows: Windows = field(default_factory=Windows)
    shape: Shape = field(default_factory=Shape)
    injected: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.late = self.directory / "late.jsonl"
        self.checkpoint = self.directory / "checkpoint"
        self.config = self.directory / "config.yaml"
        self.late.touch()
        self.configure()
        kafka = self.broker.client()
        kafka.create(TOPIC, self.shape.partitions, max_message_bytes=2_000_000)
        self.source = Source(kafka, TOPIC, self.seed, self.shape)
        self.chronicle = Chronicle(self.checkpoint, TOPIC)
        self.running: Program | None = None
        self.gone: frozenset[tuple[int, int]] = frozenset()

    def configure(self, whole: bool = True) -> None:
        """Write the config.

        Args:
            whole: whether messages that Kafka no longer has end the stream.
        """
        windows, hops = self.windows, self.windows.every < self.windows.size
        self.config.write_text(
            CONFIG.format(
                broker=self.broker.address(),
                topic=TOPIC,
                whole=str(whole).lower(),
                window="hopping_window" if hops else "tumbling_window",
                every=f"every: {windows.every}s" if hops else "",
                size=windows.size,
                lateness=windows.lateness,
                sink=self.sink.config(),
                late=self.late,
            )
        )

    @property
    def times(self) -> int:
        """How often a row that repeats itself does its worst."""
        return 20 if self.long else 1

    @property
    def program(self) -> Program:
        """The program, which runs."""
        assert self.running is not None, "the program does not run"
        return self.running

    def start(self) -> Program:
        """Start the program, for the first time or where it was."""
        self.running = Program(self.config, self.checkpoint)
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
        self._wait_for_all()
        self.source.close_windows()
        self._wait_for_all()
        last = self.program
        if self.stop() != 0:
            raise ProofError(f"SIGTERM: exit code is not 0: {last.messages()[-5:]}")
        farewell = next(line for line in reversed(last.lines()) if "messages" in line)
        sent = {at: one for at, one in self.source.sent.items() if at not in self.gone}
        micro_batches = self.chronicle.micro_batches()
        expected = replay(sent, micro_batches, self.windows.rules, self.gone)
        self._check_reach(expected)
        output = Output(self.sink.windows(), whole_lines(self.late), farewell)
        figures = compare(sent, expected, output, self.sink.repeats)
        return f"{figures}; {', '.join(self.injected)}" if self.injected else figures

    def _wait_for_all(self) -> None:
        ends = self.source.ends()

        def taken() -> bool:
            found = self.chronicle.taken()
            return all(found.get(partition, 0) >= end for partition, end in ends.items())

        self.wait_for(taken, "for all events to be taken in")

    def _check_reach(self, expected: Expected) -> None:
        """Hold that the run was one that could fail."""
        if len(expected.closed) < 20 or not expected.dropped:
            raise ProofError(f"too little has happened: {len(expected.closed)} windows")


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
