"""Windows that end a worker behind their buffer, and messages that do so at an output."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.engine.stage.crash_search import (
    CRASH_INSTRUCTIONS,
    CrashInstructions,
    WorkerCrashesError,
)
from streamer.sdk.processing.crashes import Crash

from .stream import Run, write_lines

T = 1_700_000_000  # seconds; a multiple of 10
TIMES = [(T + second) * 10**9 for second in range(0, 60, 10)]

# The process of the test is the parent of what its command runs, and so is one that it forks.
DEADLY = """
    - switch:
        - check: %s
          processors:
            - label: deadly
              command: { name: sh, args_mapping: 'root = ["-c", "kill -SEGV $PPID; sleep 9"]' }
"""
CAUGHT = """
    - catch:
        - mapping: 'root = this.assign({"error": error(), "by": error_source_label()})'
"""
SUM = """
    - mapping: |
        root = if batch_index() == 0 {
          {"light": this.light, "n": json("n").from_all().sum()}
        } else { deleted() }
"""
BY_LIGHT = "    - group_by_value: {value: '${! json(\"light\") }'}"
SYSTEM = "system_window: { timestamp_mapping: root = this.ts, size: 10s%s }"
EVENT = (
    "tumbling_window: {timestamp_mapping: root = this.ts, size: 10s, "
    "key_mapping: root = this.light%s}"
)
SAID = "the process that works on it ends (SIGSEGV)"


def config(buffer: str, processors: str, output: str = "") -> str:
    return f"""
input: {{ file: {{ paths: [cars.jsonl] }} }}
buffer: {{ {buffer} }}
pipeline:
  processors:
{processors or "    - noop: {}"}
output:
  stdout: {{}}
{output}
spark: {{ shards: 2, master: "local[2]" }}
"""


@pytest.fixture(autouse=True)
def cars(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cars.jsonl"
    write_lines(
        path,
        [
            {"ts": T + second, "light": light, "n": second + at * 100}
            for second in range(40)
            for at, light in enumerate("abc")
        ],
    )
    return path


@pytest.fixture
def order() -> Iterator[Callable[[CrashInstructions | None], None]]:
    yield CRASH_INSTRUCTIONS.set
    CRASH_INSTRUCTIONS.set(None)


def without(text: str) -> list[Any]:
    """Return what comes out where nothing ends the process."""
    run = Run(text)
    for t in TIMES:
        run.step(t)
    return run.printed()


def past(
    text: str, order: Callable[[CrashInstructions | None], None]
) -> tuple[Run, tuple[Crash, ...]]:
    """Run a stream as the driver does it: what is found is known to the next try."""
    run = Run(text)
    known: tuple[Crash, ...] = ()
    for t in TIMES:
        known_here: tuple[Crash, ...] = ()
        for _ in range(9):
            before = copy.deepcopy(run.state.stores), copy.copy(run.state.offset)
            order(CrashInstructions.from_json(CrashInstructions(True, known_here).to_json()))
            try:
                run.step(t, tries=2)
                break
            except WorkerCrashesError as found:
                assert not set(found.crashes) & set(known_here)
                known_here += found.crashes
                run.state.stores, run.state.offset = before
        else:
            raise AssertionError("nothing came through")
        known += known_here
    return run, known


def ordered(documents: list[Any]) -> list[str]:
    return sorted(json.dumps(document, sort_keys=True) for document in documents)


@pytest.mark.parametrize("retention", ["", ", retention: 7d"], ids=["", "retention"])
@pytest.mark.parametrize("buffer", [SYSTEM, EVENT], ids=["system", "event"])
def test_groups_whose_folded_result_ends_the_process_fail_alone(buffer, retention, order) -> None:
    group = BY_LIGHT if buffer == SYSTEM else ""
    # A window of the clock ends with the second that one of events begins with.
    sums = (1055, 2155) if buffer == SYSTEM else (1045, 2145)
    checks = " || ".join(f"this.n == {n}" for n in sums)
    text = config(buffer % retention, f"{group}\n{SUM}%s{CAUGHT}")
    usual = without(text % "")
    assert [one["light"] for one in usual if one["n"] in sums] == ["b", "c"]
    run, known = past(text % (DEADLY % f"'{checks}'"), order)
    assert {(crash.label, crash.reason, crash.call) for crash in known} == {
        ("deadly", "SIGSEGV", 1)
    }
    assert len(known) == 2 and {crash.part[:6] for crash in known} == {"shard "}
    failed = {"error": SAID, "by": "deadly"}
    expected = [one | failed if one["n"] in sums else one for one in usual]
    assert ordered(run.printed()) == ordered(expected)
    assert len(run.said("A message is marked as failed")) == 2


def test_a_window_whose_messages_end_the_process_fails_at_the_component(order) -> None:
    text = config(SYSTEM % "", f"%s{CAUGHT}")
    usual = without(text % "")
    assert len(usual) == 120
    run, [crash] = past(text % (DEADLY % "this.n == 115"), order)
    # `switch` has given the processor that one message.
    assert (crash.label, crash.call) == ("deadly", 1)
    found = run.printed()
    assert [one["n"] for one in found if "error" in one] == [115]
    assert ordered([{**one, "error": None, "by": None} for one in found]) == ordered(
        [{**one, "error": None, "by": None} for one in usual]
    )


@pytest.mark.parametrize("buffer", [SYSTEM % "", EVENT % "", "none: {}"], ids=str.split)
def test_messages_that_end_the_process_in_an_output_s_processors_fail_alone(buffer, order) -> None:
    output = f"  processors:\n{DEADLY % 'this.n == 37 || this.n == 202'}{CAUGHT}"
    run, known = past(config(buffer, "", output), order)
    assert [(crash.stage, crash.label) for crash in known] == [("output 0", "deadly")] * 2
    found = run.printed()
    assert sorted(one["n"] for one in found if "error" in one) == [37, 202]
    assert len(found) == 120


def test_late_messages_that_end_the_process_fail_alone(cars, order) -> None:
    rest = f"""
output_resources:
  - label: rest
    stdout: {{}}
    processors:{DEADLY.replace(chr(10), chr(10) + "    ") % "this.n == 7001"}
"""
    write_lines(cars, [{"ts": T, "light": "a", "n": 7000 + n} for n in range(3)])
    run, [crash] = past(config(EVENT % ", late_output: rest", "") + rest, order)
    assert (crash.stage, crash.label) == ("output 1", "deadly")
    assert [one["n"] for one in run.printed(1)] == [7000, 7001, 7002]
    assert len(run.printed(0)) == 120
    assert len(run.said("A message is marked as failed")) == 1
