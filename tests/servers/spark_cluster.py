"""A standalone Spark cluster: a master and workers, as `deploy/dev/cluster.sh` starts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers import lasting_port

_SCRIPT = Path(__file__).parents[2] / "deploy" / "dev" / "cluster.sh"


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs.

    Attributes:
        home: where its script keeps process ids and logs.
        env: what the script is called with.
        url: the master's.
    """

    home: Path
    env: dict[str, str]
    url: str

    def call(self, *arguments: str) -> str:
        """Call the script; return what it prints."""
        done = subprocess.run(
            [_SCRIPT, *arguments], env=self.env, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pid(self, name: str) -> int:
        """Return the process id of `master` or `worker-N`."""
        return int((self.home / f"{name}.pid").read_text())

    def kill(self, name: str) -> None:
        """kill -9."""
        os.kill(self.pid(name), signal.SIGKILL)

    def executors(self, name: str) -> list[int]:
        """Return the process ids of a worker's executors."""
        return children(self.pid(name))


def children(pid: int) -> list[int]:
    """Return the process ids of a process's children."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(text) for text in task.read_text().split()]
    return found


@contextmanager
def spark_cluster(directory: Path, workers: int = 4) -> Iterator[Cluster]:
    """Run a cluster of workers with one core each."""
    home, port = directory / "cluster", lasting_port()
    env = {
        **os.environ,
        "CLUSTER_HOME": str(home),
        "CLUSTER_PORT": str(port),
        "STREAMER_PYTHON": sys.executable,
        # As on hosts of a cluster: what the driver's environment has is not there.
        "PYTHONPATH": "",
    }
    cluster = Cluster(home, env, f"spark://127.0.0.1:{port}")
    try:
        cluster.call("start", str(workers))
        yield cluster
    finally:
        cluster.call("stop")
