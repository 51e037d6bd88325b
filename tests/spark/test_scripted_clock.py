"""Tests of whole streams give the same as the same config on Spark with the same clock."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import load_config, parse_config
from streamer.config.unit_tests.definitions import Case, read_definitions
from streamer.core.durations import MILLISECOND, SECOND
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.timestamps import parse_event_time
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import Plan, make_plan
from streamer.tools.unit_tests.steps import ScriptStep, read_steps

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
WINDOWS = sorted((ROOT / "tests" / "unit_tests" / "windows").glob("*.yaml"))
EXAMPLE = ROOT / "configs" / "traffic_light.yaml"
# One of each kind of windows, and of each way in which they come out.
KINDS = (
    "ekuiper_count_5_2",
    "tenzir_events",
    "ekuiper_session",
    "ekuiper_sliding",
    "kafka_streams_sliding",
    "kip450_count",
    "hour_early_on_time_late",
    "ksqldb_order_count",
    "running_top_k",
    "tenzir_severity_count",
)
CHOSEN = ("traffic_light", "ekuiper_session", "ekuiper_count_5_2")
RECIPES = [ROOT / "configs" / "recipes" / f"{name}.yaml" for name in KINDS]


def cases() -> Iterator[Any]:
    for path in [*WINDOWS, EXAMPLE, *RECIPES]:
        # Groups, and windows of keys, are what several shards can hold.
        for shards in (1, 2) if path.stem in ("sliding", "ekuiper_session") else (1,):
            for case in read_definitions(str(path)).cases:
                name = f"{path.stem}-{case.line}-{shards}"
                chosen = path.stem in CHOSEN
                marks = [pytest.mark.smoke if chosen else pytest.mark.sample(path.stem)]
                yield pytest.param(path, case, shards, id=name, marks=marks)


def scripted(plan: Plan, script: list[ScriptStep]) -> tuple[list[list[bytes]], dict[str, int]]:
    """Return what each output would have been given, turn by turn, and what was dropped."""
    stream = ScriptedStream(plan)
    ex = Execution(lambda: 0)
    writes = [build_context(plan.resources).build(output).output.encode for output in plan.outputs]
    found: list[list[bytes]] = [[] for _ in plan.outputs]
    for turn in script:
        if turn.restart:
            stream.restart()
        elif turn.runs_batch:
            outcome = stream.run_micro_batch(turn.time_ns, turn.messages, turn.ends_input)
            batches = [outcome.batches, [[message] for message in outcome.dropped]]
            for out, write, made in zip(found, writes, batches, strict=False):
                out.append(b"".join(body for batch in made for _, body in write(batch, ex)))
    return found, dict(stream.snapshot.dropped)


@pytest.mark.parametrize(("config", "case", "shards"), [*cases()])
def test_a_scripted_stream_gives_what_spark_gives(
    session: Any, tmp_path: Path, config: Path, case: Case, shards: int
) -> None:
    from .scripted import run_on_spark

    plan = make_plan(load_config(config, env={}))
    plan = replace(plan, input=replace(plan.input, processors=()))
    plan = replace(plan, shards=shards) if plan.window else plan
    script = list(read_steps(case.parsed, config.parent))
    expected, dropped = scripted(plan, script)
    ran = run_on_spark(session, plan, script, tmp_path)
    assert ran.dropped == dropped
    if shards == 1:
        assert ran.outputs == expected
    else:
        # Groups that close together come out in the order of their shards.
        assert [[sorted(b.splitlines()) for b in out] for out in ran.outputs] == [
            [sorted(b.splitlines()) for b in out] for out in expected
        ]
    assert any(out for outputs in expected for out in outputs) or dropped


RANDOM = """
buffer:
  system_window:
    timestamp_mapping: root = this.at
    size: 10s
    %s
    allowed_lateness: 1500ms
    offset: -2s
    late_output: rest
pipeline:
  processors:
    - mapping: root = {"n":this.n, "end":@window_end_timestamp, "of":@part, "why":error()}
output_resources: [{ label: rest, stdout: {} }]
spark: { shards: 1 }
"""


def random_script(chance: random.Random) -> list[ScriptStep]:
    """Return fifteen turns: small steps and jumps, early and late messages, restarts, an end."""
    t, n, script = parse_event_time("2026-01-01T00:00:00Z"), 0, []
    for place in range(15):
        t += chance.choice((0, 1, 500, 2_000, 9_999, 60_000)) * MILLISECOND
        restart = chance.random() < 0.1
        sent = []
        for _ in range(chance.randrange(8)):
            n += 1
            at = (t + chance.randrange(-25_000, 15_000) * MILLISECOND) / SECOND
            document = {"n": n, "at": at if chance.random() < 0.95 else "never"}
            message = Message(json.dumps(document).encode(), {"part": n % 3})
            error = "broken" if chance.random() < 0.05 else None
            sent.append(ScriptedMessage(message.with_error(error), chance.randrange(3)))
        last = place == 14
        script.append(ScriptStep(str(place), restart, not restart, t, tuple(sent), last, None))
    return script


@pytest.mark.sample("random")
@pytest.mark.parametrize("more", ["end_of_input: flush", "slide: 2500ms", "on_expired: keep"])
def test_random_scripts_give_what_spark_gives(session: Any, tmp_path: Path, more: str) -> None:
    from .scripted import run_on_spark

    seed = random.randrange(10**6)
    plan = make_plan(parse_config(RANDOM % more, "x.yaml"))
    script = random_script(random.Random(seed))
    expected, dropped = scripted(plan, script)
    ran = run_on_spark(session, plan, script, tmp_path)
    assert (ran.dropped, ran.outputs) == (dropped, expected), f"seed {seed}"
    assert any(expected[0]), f"nothing came out, seed {seed}"


@pytest.mark.smoke
def test_a_restart_before_anything_ran_is_a_first_start(session: Any, tmp_path: Path) -> None:
    from .scripted import run_on_spark

    t = parse_event_time("2026-01-01T00:00:00Z")
    sent = (
        ScriptedMessage(
            Message(json.dumps({"n": 1, "at": t / SECOND - 3}).encode(), {"part": 0}), 0
        ),
    )
    script = [
        ScriptStep("0", True, False, t, (), False, None),
        ScriptStep("1", False, True, t, sent, False, None),
        ScriptStep("2", False, True, t + 20 * SECOND, (), True, None),
    ]
    plan = make_plan(parse_config(RANDOM % "end_of_input: flush", "x.yaml"))
    expected, dropped = scripted(plan, script)
    ran = run_on_spark(session, plan, script, tmp_path)
    assert (ran.dropped, ran.outputs) == (dropped, expected)
    assert any(expected[0])
