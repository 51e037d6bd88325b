"""Estimates of `explain --cost` against runs on Spark: CPU, memory, checkpoint and state."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from streamer.config.load import parse_config
from streamer.core.message import Message
from streamer.plan import make_plan
from streamer.plan.component_lookup import leaf_inputs
from streamer.tools.cost.estimate import LoadCost, estimate_stream
from streamer.tools.cost.measure import SampledInput
from tests.bench.process_tree import Tree
from tests.spark.conftest import Runner

pytestmark = pytest.mark.spark

SAMPLE = 20_000
FEW_MESSAGES = 500
TIMES = "timestamp_mapping: root = this.t, key_mapping: root = this.k"
FIRST = "root = if batch_index() > 0 {{ deleted() }} else {{ {} }}"
SUMS = FIRST.format('{"k": @window_key, "s": json("v").from_all().sum()}')
WHOLE = FIRST.format('{"k": @window_key, "v": json("v").from_all()}')


@dataclass(frozen=True)
class Case:
    """A stream, and the messages that it reads to their end, in two micro-batches.

    A start reads 100,000 messages first. Windows are open then.
    """

    buffer: str
    mapping: str
    keys: int
    count: int = 104_000
    has_two_inputs: bool = False


CASES = {
    "no window": Case("buffer: {none: {}}", "root = this.k", 50),
    "tumbling, aggregates, few keys": Case(
        f"buffer: {{tumbling_window: {{{TIMES}, size: 50s, offset: 5s, allowed_lateness: 10s}}}}",
        SUMS,
        50,
    ),
    "hopping, aggregates, many keys": Case(
        f"buffer: {{hopping_window: {{{TIMES}, size: 30s, every: 10s}}}}", SUMS, 40_000
    ),
    "tumbling, whole messages": Case(
        f"buffer: {{tumbling_window: {{{TIMES}, size: 50s, offset: 5s}}}}", WHOLE, 50
    ),
    "sessions": Case(f"buffer: {{session_window: {{{TIMES}, gap: 2s}}}}", WHOLE, 40_000),
    "sliding": Case(
        f"buffer: {{sliding_window: {{{TIMES}, size: 100ms, mode: event}}}}", WHOLE, 50
    ),
    "join of streams": Case(
        "buffer: {window_join: {left: a, right: b, within: 100ms, allowed_lateness: 5s, "
        f"{TIMES}}}}}",
        "root.v = this.left.v",
        *(5_000, 104_000, True),
    ),
    "join with a table": Case(
        "buffer: {table_join: {stream: a, table: b, key_mapping: root = this.k}}",
        "root.v = this.left.v",
        *(20_000, 104_000, True),
    ),
}


def make_messages(keys: int, seed: int) -> Iterator[bytes]:
    """Give messages without end, of a millisecond each."""
    rng = random.Random(seed)
    number = 0
    while True:
        one = {"t": 1767225600 + number / 1000, "k": f"sensor-{rng.randrange(keys)}"}
        one |= {"v": round(rng.random() * 100, 2), "place": f"hall-{number % 50}"}
        yield json.dumps(one).encode()
        number += 1


def write_config(case: Case, directory: Path, count: int) -> str:
    """Write the inputs, and return the config of a stream that reads them."""
    names = ["a", "b"] if case.has_two_inputs else ["a"]
    inputs = []
    for seed, name in enumerate(names):
        path = directory / f"{name}.jsonl"
        lines = islice(make_messages(case.keys, seed), count // len(names))
        path.write_bytes(b"\n".join(lines) + b"\n")
        inputs.append(f'{{label: {name}, file: {{paths: ["{path}"]}}}}')
    return f"""
input: {{broker: {{inputs: [{", ".join(inputs)}]}}}}
{case.buffer}
pipeline: {{processors: [{{mapping: {json.dumps(case.mapping)}}}]}}
output: {{file: {{path: "{directory}/out.jsonl", codec: lines}}}}
spark: {{master: "local[2]", shards: 2}}
"""


@dataclass
class Run:
    """A run on Spark: CPU seconds, bytes, messages in open windows or rows of a table."""

    cpu: float = 0.0
    memory: int = 0
    checkpoint: int = 0
    held: int = 0


def measure_run(run: Runner, text: str, directory: Path) -> Run:
    tree = Tree(os.getpid(), 1.0, shared=True)
    measured = Run()
    path = directory / "checkpoint" / "spark"

    def watch(stream: Any) -> None:
        snapshot = stream.snapshot()
        measured.held = max(measured.held, snapshot.held, snapshot.state_keys)
        measured.checkpoint = max(measured.checkpoint, measure_directory(path))

    try:
        run(text, checkpoint=str(directory / "checkpoint"), watch=watch)
    finally:
        tree.stop()
    measured.checkpoint = max(measured.checkpoint, measure_directory(path))
    measured.cpu = tree.samples[-1].cpu - tree.samples[0].cpu
    measured.memory = max(sample.memory for sample in tree.samples)
    return measured


def measure_directory(path: Path) -> int:
    """Return the bytes of all files; some may go meanwhile."""
    total = 0
    for inside, _, names in os.walk(path):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(inside, name))
            except FileNotFoundError:
                continue
    return total


def estimate_run(case: Case, text: str) -> LoadCost:
    """Return the estimate by the first messages of a case, for all of them as a backlog."""
    plan = make_plan(parse_config(text, "test.yaml"), level="OFF")
    inputs = [*leaf_inputs(plan.input, plan.resources)]
    sample = []
    for seed, component in enumerate(inputs):
        lines = islice(make_messages(case.keys, seed), SAMPLE // len(inputs))
        sample.append(SampledInput(component, [[Message(one)] for one in lines]))
    return estimate_stream(plan, sample, backlog=case.count).backlog


@pytest.mark.sample("cost")
@pytest.mark.parametrize("name", CASES)
def test_a_run_takes_half_to_double_the_estimate(
    name: str, run_stream: Runner, tmp_path: Path
) -> None:
    case = CASES[name]
    start = measure_start(case, run_stream, tmp_path)
    text = write_config(case, tmp_path, case.count)

    run = measure_run(run_stream, text, tmp_path)
    estimate = estimate_run(case, text)

    cpu = (run.cpu - start) / case.count * 1e6
    pairs = {
        "CPU": (cpu, estimate.cpu_seconds),
        "memory": (run.memory, estimate.memory_bytes),
        "checkpoint": (run.checkpoint, estimate.checkpoint_bytes),
        "held": (run.held, estimate.held),
    }
    wrong = {
        part: (measured, estimated)
        for part, (measured, estimated) in pairs.items()
        if not estimated / 2 <= measured <= estimated * 2
    }
    assert not wrong, f"measured and estimated: {wrong}, of {pairs}"


def measure_start(case: Case, run_stream: Runner, directory: Path) -> float:
    """Return the CPU seconds of a start, when Spark has run such a stream before.

    It has so few messages that all is the start.
    """
    runs = []
    for name in ("cold", "warm"):
        (directory / name).mkdir()
        text = write_config(case, directory / name, FEW_MESSAGES)
        runs.append(measure_run(run_stream, text, directory / name))
    return runs[-1].cpu
