"""The cluster that tests start ends with them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.servers.spark_cluster import children, runs, spark_cluster

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def test_it_is_gone_afterwards_however_narrow_the_terminal_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By this, `ps` cuts a command off before the name that the script looks for.
    monkeypatch.setenv("COLUMNS", "80")
    with spark_cluster(tmp_path, workers=1) as cluster:
        pids = [cluster.pid("master"), cluster.pid("worker-1")]
    assert not [pid for pid in pids if runs(pid)]


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
