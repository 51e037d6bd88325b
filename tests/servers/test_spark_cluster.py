"""The cluster that tests start ends with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import runs
from tests.servers.spark_cluster import spark_cluster

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def test_it_is_gone_afterwards_however_narrow_the_terminal_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By this, `ps` cuts a command off before the name that the script looks for.
    monkeypatch.setenv("COLUMNS", "80")
    with spark_cluster(tmp_path, workers=1) as cluster:
        pids = [cluster.pid("master"), cluster.pid("worker-1")]
    assert not [pid for pid in pids if runs(pid)]
