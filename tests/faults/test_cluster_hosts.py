"""A cluster of several hosts, each with its own network: a cut of it loses nothing.

By hand: STREAMER_KILLS=1 pytest tests/faults/test_cluster_hosts.py; STREAMER_WORKERS and
STREAMER_CUT (seconds) make it bigger and longer.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from tests.servers.namespaces import hosts
from tests.servers.spark_cluster import Cluster, spark_cluster

from .program import Program, program
from .test_cluster import KILLS, RECOVERED, SEED, WORKERS
from .test_kill import CONFIG, SIZE, check

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif("STREAMER_KILLS" not in os.environ, reason="by hand: STREAMER_KILLS=1"),
]

CUT = float(os.environ.get("STREAMER_CUT", "5"))
"""Seconds without a network."""

_END = re.compile(rb'"end":"([^"]+)"')
_USUAL = SIZE + 3.0
"""Seconds: windows are so long, and a little later they are written."""


@dataclass
class Site:
    """A stream on a cluster of hosts.

    Attributes:
        cluster: has all hosts but the driver's.
        rng: chooses.
        run: the driver.
        out: what it writes.
    """

    cluster: Cluster
    rng: random.Random
    run: Program
    out: Path
    _read: int = 0
    _newest: float = 0.0

    def newest(self) -> float:
        """Return the end of the newest window that was written, s."""
        if self.out.exists():
            with self.out.open("rb") as lines:
                lines.seek(self._read)
                more = lines.read()
            whole = more[: more.rfind(b"\n") + 1]
            self._read += len(whole)
            ends = [datetime.fromisoformat(at.decode()).timestamp() for at in _END.findall(whole)]
            self._newest = max([self._newest, *ends])
        return self._newest

    def worker(self) -> str:
        """Choose a worker."""
        return f"worker-{self.rng.randint(1, WORKERS)}"

    def whole(self) -> None:
        """Wait until each worker has an executor."""
        names = [f"worker-{n + 1}" for n in range(WORKERS)]
        self.run.wait_for(
            lambda: all(map(self.cluster.executors, names)), RECOVERED, "for all executors"
        )

    def before_a_window_ends(self) -> None:
        """Wait until a window is about to end: then a fault holds up what comes just after it."""
        time.sleep((-time.time() - self.rng.uniform(0.2, 1.5)) % SIZE)

    def recovers(self, since: float) -> float:
        """Wait until what ended after a time was written, and results are no later than usual.

        Returns:
            Seconds since then.
        """
        self.run.wait_for(
            lambda: since < self.newest() and time.time() - self._newest < _USUAL,
            RECOVERED,
            "for results",
        )
        return time.time() - since

    def goes_on(self) -> None:
        """See that one more window comes when it should."""
        self.recovers(time.time())


def cut(site: Site) -> float:
    """A worker's network is cut for a while."""
    net, host = site.cluster.hosts, site.worker()
    assert net is not None
    began = time.time()
    net.cut(host)
    try:
        time.sleep(CUT)
    finally:
        net.mend(host)
    return site.recovers(began)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("hosts")
    names = ["master", "driver", *(f"worker-{n + 1}" for n in range(WORKERS))]
    with hosts(names) as net, spark_cluster(directory, WORKERS, net) as found:
        yield found


def test_every_event_is_in_exactly_its_windows_whatever_is_cut(
    tmp_path: Path, cluster: Cluster
) -> None:
    print(f"STREAMER_SEED={SEED}")
    rng = random.Random(SEED)
    out = tmp_path / "out.jsonl"
    config = tmp_path / "hosts.yaml"
    output = f"file: {{path: '{out}', codec: lines}}"
    text = CONFIG.format(first=1, size=SIZE, slide="", all="", output=output)
    config.write_text(text)
    net = cluster.hosts
    assert net is not None
    driver = {"before": net.inside("driver"), "env": {"SPARK_LOCAL_IP": net.address("driver")}}
    more = ("--master", cluster.url, "-s", f"spark.shards={WORKERS}")
    with program(config, tmp_path / "checkpoint", *more, **driver) as run:
        site = Site(cluster, rng, run, out)
        run.wait_running()
        run.wait_for(lambda: site.newest() > 0, RECOVERED, "for the first window")
        for _ in range(KILLS):
            site.whole()
            site.before_a_window_ends()
            print("recovered in", round(cut(site), 1), "s")
            site.goes_on()
        assert run.stop() == 0
    assert check(out.read_bytes().splitlines(), slides=1, repeats=False) > 1000
