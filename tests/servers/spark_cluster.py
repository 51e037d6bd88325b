"""A standalone Spark cluster: a master and workers, as `deploy/dev/cluster.sh` starts them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.processes import children
from tests.servers import lasting_port
from tests.servers.namespaces import Hosts

_SCRIPT = Path(__file__).parents[2] / "deploy" / "dev" / "cluster.sh"
_BEGINNING = 50_000
"""Characters of an executor's log: it says there who it is and that the driver knows of it."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs.

    Attributes:
        home: where its script keeps process ids and logs.
        env: what the script is called with.
        url: the master's.
        hosts: where its parts run, each on the host of its name; None for this machine.
    """

    home: Path
    env: dict[str, str]
    url: str
    hosts: Hosts | None = None

    @property
    def conf(self) -> dict[str, str]:
        """Settings of Spark for a program that workers have installed."""
        return {
            "spark.pyspark.python": sys.executable,
            "spark.executorEnv.PYTHONPATH": str(_SCRIPT.parents[2]),
        }

    @property
    def options(self) -> tuple[str, ...]:
        """What a program is started with to run here, where workers have it installed.

        They need not unpack 200 MB before they begin, as they do by default.
        """
        conf = json.dumps(self.conf)
        environment = ("-s", "spark.environment=installed", "-s", f"spark.conf={conf}")
        return ("--master", self.url, *environment)

    @property
    def environments(self) -> list[Path]:
        """The environments that workers have unpacked."""
        place = self.home.parent / "cache" / "streamer" / "environments"
        return [path for path in place.glob("*") if path.is_dir()]

    def call(self, *arguments: str, on: str = "") -> str:
        """Call the script, on a host; return what it prints."""
        env, before = self.env, []
        if self.hosts is not None and on:
            env = {**env, "CLUSTER_HOST": self.hosts.address(on)}
            before = self.hosts.inside(on)
        done = subprocess.run(
            [*before, _SCRIPT, *arguments], env=env, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def begin(self, name: str) -> None:
        """Start `master` or `worker-N`, and wait until it is ready."""
        self.call(*name.split("-"), on=name)

    def disk(self, name: str) -> Path:
        """Return where `worker-N` keeps what it has on disk."""
        return self.home / name

    def pid(self, name: str) -> int:
        """Return the process id of `master` or `worker-N`."""
        return int((self.home / f"{name}.pid").read_text())

    def names(self, pattern: str) -> list[str]:
        """Return the names of what was started."""
        return sorted(path.stem for path in self.home.glob(f"{pattern}.pid"))

    def kill(self, name: str) -> None:
        """kill -9."""
        os.kill(self.pid(name), signal.SIGKILL)

    def executors(self, name: str) -> list[int]:
        """Return the process ids of a worker's executors."""
        return children(self.pid(name))

    def known(self, name: str) -> list[str]:
        """Return the numbers of a worker's executors that the driver knows of: it takes seconds."""
        found, pids = list[str](), self.executors(name)
        for log in (self.disk(name) / "work").glob("app-*/*/stderr"):
            with log.open(errors="replace") as lines:
                text = lines.read(_BEGINNING)
            if "Successfully registered with driver" in text:
                found += [log.parent.name for pid in pids if f" {pid}@" in text]
        return found


@contextmanager
def spark_cluster(
    directory: Path,
    workers: int = 4,
    hosts: Hosts | None = None,
    hidden: Path | None = None,
) -> Iterator[Cluster]:
    """Run a cluster of workers with one core each.

    Args:
        directory: what the cluster keeps is below it.
        workers: how many.
        hosts: has `master` and each `worker-N`; None for this machine.
        hidden: a directory that workers find empty, as on hosts that have another one there.
    """
    home, port = directory / "cluster", lasting_port()
    at = "127.0.0.1" if hosts is None else hosts.address("master")
    env = {
        **os.environ,
        "CLUSTER_HOME": str(home),
        "CLUSTER_PORT": str(port),
        "CLUSTER_MASTER": at,
        "STREAMER_PYTHON": sys.executable,
        # As on hosts of a cluster: what the driver's environment has is not there.
        "PYTHONPATH": "",
        "XDG_CACHE_HOME": str(directory / "cache"),
    }
    if hidden is not None:
        env["CLUSTER_UNDER"] = str(_hiding(directory / "hiding", hidden))
    cluster = Cluster(home, env, f"spark://{at}:{port}", hosts)
    try:
        if hosts is None:
            cluster.call("start", str(workers))
        else:
            cluster.begin("master")
            with ThreadPoolExecutor() as starts:
                list(starts.map(cluster.begin, [f"worker-{n + 1}" for n in range(workers)]))
        yield cluster
    finally:
        cluster.call("stop")


def _hiding(script: Path, hidden: Path) -> Path:
    """Write a program that runs another one in a mount namespace where a directory is empty."""
    mount = f"mount -t tmpfs none {shlex.quote(str(hidden))}"
    own = (
        f'#!/bin/sh\nexec unshare --map-root-user --mount sh -c \'{mount} && exec "$@"\' sh "$@"\n'
    )
    script.write_text(own)
    script.chmod(0o755)
    return script
