"""The end of a program, and Ctrl-C, stop its streams: the next program goes on with the windows."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.processes import descendants, runs
from tests.service.library import ending_program
from tests.service.library.test_running_streams import environment

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def run_program(directory: Path, how: str) -> dict[str, Any]:
    """Run the program, interrupt it if it waits for that; return what it has reported, by steps."""
    program = subprocess.Popen(
        [sys.executable, "-m", ending_program.__name__, how, str(directory)],
        cwd=directory,
        env=environment(directory),
        stdout=subprocess.PIPE,
        stderr=(directory / f"{how}.log").open("wb"),
        text=True,
    )
    steps: dict[str, Any] = {}
    members: set[int] = set()
    assert program.stdout is not None
    for line in program.stdout:
        step = json.loads(line)
        steps[step.pop("step")] = step
        if "running" in steps and not members:
            members = descendants(program.pid)
            if how == "interrupt":
                program.send_signal(signal.SIGINT)
    code = program.wait(120)
    assert code == 0, (directory / f"{how}.log").read_text()[-3000:]
    deadline = time.monotonic() + 60
    while any(map(runs, members)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not any(map(runs, members)), "processes of the program are left"
    return steps


def test_windows_continue_after_the_end_of_a_program_and_an_interrupt(tmp_path: Path) -> None:
    ended = run_program(tmp_path, "exit")
    assert ended["running"]["messages"] > 5
    interrupted = run_program(tmp_path, "interrupt")
    assert interrupted["running"]["messages"] > ended["running"]["messages"]
    assert interrupted["interrupted"] == {"handles": 0}
    drained = run_program(tmp_path, "drain")["drained"]
    assert drained["states"] == ["ended", "drained"]
    # All that three programs have read is in one window, once.
    assert drained["messages"] > interrupted["running"]["messages"]
    assert drained["numbers"] == list(range(1, drained["messages"] + 1))
