"""Streams that run in a program: several on one Spark, stops, drains, failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.library import running_program

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

CANARY = "s3cr3t-canary-of-the-library"
ROOT = Path(__file__).parents[3]


def environment(directory: Path) -> dict[str, str]:
    return {
        **os.environ,
        "CANARY": CANARY,
        "XDG_STATE_HOME": str(directory / "state"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The facts of one program, by its steps."""
    directory = tmp_path_factory.mktemp("library")
    run = subprocess.run(
        [sys.executable, "-m", running_program.__name__, str(directory)],
        cwd=directory,
        env=environment(directory),
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert CANARY not in run.stdout + run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return {line.pop("step"): line for line in lines}


def test_a_start_can_be_stopped_and_leaves_the_checkpoint_free(facts: dict[str, Any]) -> None:
    assert facts["stop_a_start"] == {"state": "stopped", "again": "ended"}
    assert facts["short"]["numbers"] == list(range(1, 11))


def test_two_streams_share_one_spark(facts: dict[str, Any]) -> None:
    step = facts["two_streams"]
    assert (step["ended"]["state"], step["ended"]["messages"]) == ("ended", 2_000)
    assert step["numbers"] == list(range(1, 2_001)) and step["in_thread"] == ["running"]
    assert step["windows"][-1] == "open" and "<table>" in step["html"]
    # Also the JVM holds the checkpoint of a stream, for as long as it runs.
    assert step["locked"] == [True, False]


def test_results_of_a_stream_are_a_table(facts: dict[str, Any]) -> None:
    step = facts["two_streams"]
    assert step["results"] == 21 and step["first"] == list(range(1, 100))
    assert step["counted"] == [{"n": 21}]


def test_errors_name_the_reason_and_the_remedy(facts: dict[str, Any]) -> None:
    again, spark, wait, settings = facts["two_streams"]["errors"]
    assert again.startswith("StreamerError: the stream endless of this process runs on the")
    assert spark == "SparkInUseError: a stream uses the Spark of this process; stop them first"
    assert wait == "StreamTimeoutError: the stream endless is not over after 0.01 s"
    assert "(spark.master)" in settings and settings.startswith("StreamFailedError: the stream")


def test_a_stop_keeps_open_windows_and_a_drain_emits_them_once(facts: dict[str, Any]) -> None:
    step = facts["drain"]
    assert (step["stopped"], step["open"], step["before"]) == ("stopped", 1, [])
    assert (step["drained"], step["left"]) == ("drained", 0)
    assert step["numbers"] == list(range(1, step["messages"] + 1))
    more = facts["drain_again"]
    assert more["state"] == "drained" and len(more["numbers"]) > len(step["numbers"])
    assert more["numbers"] == list(range(1, len(more["numbers"]) + 1))


def test_a_failure_is_raised_and_shown_without_secrets(facts: dict[str, Any]) -> None:
    step = facts["fail"]
    assert (step["state"], step["stop"]) == ("failed", "failed")
    assert step["raised"].startswith("the stream failing has failed: the processor at")
    assert "${CANARY}" in step["raised"]
    assert [text for text in step["texts"] if "${CANARY}" not in text] == step["texts"][:1]


def test_a_running_event_loop_does_not_matter(facts: dict[str, Any]) -> None:
    assert facts["loop"]["states"] == ["ended", "ended"]
