"""What is told of processes."""

from __future__ import annotations

import os
import subprocess

from tests.processes import children


def test_a_child_that_has_ended_is_none() -> None:
    with (
        subprocess.Popen(["true"]) as ended,
        subprocess.Popen(["sleep", "60"]) as running,
    ):
        try:
            os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
            found = children(os.getpid())
            assert ended.pid not in found and running.pid in found
        finally:
            running.kill()
