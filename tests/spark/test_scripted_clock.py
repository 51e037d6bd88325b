"""Tests of whole streams give the same as the same config on Spark with the same clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamer.catalog import build_context
from streamer.config import load_config
from streamer.config.definitions import Case, read_definitions
from streamer.engine.scripted import ScriptedStream
from streamer.message import Execution
from streamer.plan import Plan, make_plan
from streamer.unit_tests.script import Turn, turns

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
WINDOWS = sorted((ROOT / "tests" / "unit_tests" / "windows").glob("*.yaml"))
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


def cases() -> Iterator[Any]:
    for path in [*WINDOWS, *CONFIGS]:
        config = path.with_name(path.name.replace("_streamer_test", ""))
        for case in read_definitions(str(path)).cases:
            if case.parsed["target"] == "stream":
                shards = [1, 2] if config.stem in ("sliding", "traffic_light") else [1]
                for count in shards:
                    name = f"{config.stem}-{case.line}-{count}"
                    yield pytest.param(config, case, count, id=name)


def scripted(plan: Plan, script: list[Turn]) -> tuple[list[list[bytes]], dict[str, int]]:
    """Return what each output would have been given, turn by turn, and what was dropped."""
    stream = ScriptedStream(plan)
    ex = Execution(lambda: 0)
    writes = [build_context(plan.resources).build(output).encode for output in plan.outputs]
    found: list[list[bytes]] = [[] for _ in plan.outputs]
    for turn in script:
        if turn.restart:
            stream.restart()
        elif turn.runs:
            outcome = stream.micro_batch(turn.t, turn.sent, turn.ended)
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
    script = list(turns(case.parsed, config.parent))
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
