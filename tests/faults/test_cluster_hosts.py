"""A cluster of several hosts, each with its own network and disk: what dies slowly, or comes back.

Of each fault: results come again, and every event is in exactly its windows. By hand:
STREAMER_WORKERS=4 STREAMER_KILLS=7 STREAMER_RECOVERED=60 pytest tests/faults/test_cluster_hosts.py
With STREAMER_KILLS=1 the seed chooses a fault, and what hangs is given up early.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from tests.processes import descendants
from tests.servers.disks import small_disk
from tests.servers.namespaces import hosts
from tests.servers.spark_cluster import Cluster, spark_cluster

from .program import Program, program
from .test_cluster import KILLS, RECOVERED, SEED, WORKERS, chosen
from .test_kill import CONFIG, SIZE, check

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif("STREAMER_KILLS" not in os.environ, reason="by hand: STREAMER_KILLS=1"),
]

SMALL = "worker-1"
DISK = 3 << 30
"""The worker with a disk of its own, and its bytes: for two executors' environments."""

SHORT = KILLS == 1
CUT = 5.0 if SHORT else 20.0
"""Seconds without a network."""

_EARLY = (
    "spark.network.timeout: 10s, spark.network.timeoutInterval: 2s, "
    "spark.executor.heartbeatInterval: 2s"
)
CONF = f"  conf: {{{os.environ.get('STREAMER_CONF', _EARLY if SHORT else '')}}}\n"
"""Spark's settings; to try some out: STREAMER_CONF='spark.network.timeout: 20s'"""

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
        """See that more windows come when they should."""
        for _ in range(1 if SHORT else 2):
            self.recovers(time.time())


@contextmanager
def stopped(pids: set[int]) -> Iterator[None]:
    """SIGSTOP, as of a machine that hangs; what is still there then goes on when the block ends."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue


def hung_executor(site: Site) -> float:
    """An executor and its Python stand still: its worker is told to kill it."""
    [executor] = site.cluster.executors(site.worker())
    began = time.time()
    with stopped(descendants(executor)):
        return site.recovers(began)


def zombie(site: Site) -> float:
    """A whole host stands still, is given up, and then goes on with what it was doing."""
    pids = descendants(site.cluster.pid(site.worker()))
    began = time.time()
    with stopped(pids):
        return site.recovers(began)


def full_disk(site: Site) -> float:
    """The disk of a worker is full, and stays so for a while."""
    began = time.time()
    with filled(site.cluster.disk(SMALL)):
        taken = site.recovers(began)
        site.goes_on()
    return taken


def full_disk_without_executor(site: Site) -> float:
    """The disk of a worker is full, and its executor ends: no other one can start there."""
    with filled(site.cluster.disk(SMALL)):
        began = time.time()
        for pid in site.cluster.executors(SMALL):
            os.kill(pid, signal.SIGKILL)
        taken = site.recovers(began)
        site.goes_on()
    return taken


@contextmanager
def filled(directory: Path) -> Iterator[None]:
    """Fill a disk, until the block ends."""
    ballast = directory / "ballast"
    try:
        with suppress(OSError), ballast.open("wb", buffering=0) as out:
            while out.write(bytes(1 << 20)):
                pass
        yield
    finally:
        ballast.unlink()


def cut(site: Site) -> float:
    """A worker's network is cut for a while."""
    return _cut(site, site.worker())


def cut_driver(site: Site) -> float:
    """The driver's network is cut for a while."""
    return _cut(site, "driver")


def _cut(site: Site, host: str) -> float:
    net = site.cluster.hosts
    assert net is not None
    began = time.time()
    net.cut(host)
    try:
        time.sleep(CUT)
    finally:
        net.mend(host)
    return site.recovers(began)


def lost_network(site: Site) -> float:
    """A worker's network is cut until others have its work: it worked on all by itself."""
    net, host = site.cluster.hosts, site.worker()
    assert net is not None
    began = time.time()
    net.cut(host)
    try:
        return site.recovers(began)
    finally:
        net.mend(host)


FAULTS: tuple[Callable[[Site], float], ...] = (
    hung_executor,
    zombie,
    cut,
    cut_driver,
    lost_network,
    full_disk,
    full_disk_without_executor,
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("hosts")
    names = ["master", "driver", *(f"worker-{n + 1}" for n in range(WORKERS))]
    with (
        small_disk(directory / "cluster" / SMALL, DISK),
        hosts(names) as net,
        spark_cluster(directory, WORKERS, net) as found,
    ):
        yield found


def test_every_event_is_in_exactly_its_windows_whatever_hangs(
    tmp_path: Path, cluster: Cluster
) -> None:
    print(f"STREAMER_SEED={SEED}")
    rng = random.Random(SEED)
    out = tmp_path / "out.jsonl"
    config = tmp_path / "hosts.yaml"
    output = f"file: {{path: '{out}', codec: lines}}"
    text = CONFIG.format(first=1, size=SIZE, slide="", all="", output=output)
    config.write_text(text + CONF)
    net = cluster.hosts
    assert net is not None
    driver = {"before": net.inside("driver"), "env": {"SPARK_LOCAL_IP": net.address("driver")}}
    more = ("--master", cluster.url, "-s", f"spark.shards={WORKERS}")
    with program(config, tmp_path / "checkpoint", *more, **driver) as run:
        site = Site(cluster, rng, run, out)
        run.wait_running()
        run.wait_for(lambda: site.newest() > 0, RECOVERED, "for the first window")
        for fault in chosen(FAULTS, rng):
            site.whole()
            site.before_a_window_ends()
            began = time.time()
            print(fault.__name__, "recovered in", round(fault(site), 1), "s", flush=True)
            site.goes_on()
            print(fault.__name__, "over after", round(time.time() - began), "s", flush=True)
        assert run.stop() == 0
    assert check(out.read_bytes().splitlines(), slides=1, repeats=False) > 1000
