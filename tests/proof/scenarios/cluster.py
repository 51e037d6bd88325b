"""Processes of a standalone cluster of Spark that die, or that come back from the dead."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from tests.processes import descendants
from tests.proof.runner import Run, under_load
from tests.proof.verdict import ProofError
from tests.servers.spark_cluster import Cluster

_LOSS = 8
"""Seconds after which Spark gives up an executor that says nothing."""
_SOON = {
    "spark.executor.heartbeatInterval": "1s",
    "spark.network.timeout": f"{_LOSS}s",
    "spark.network.timeoutInterval": "1s",
}
_CUT = ("worker", "broker", "driver")
_WITHOUT = (5.0, 15.0)
"""Seconds without a network: executors are given up in some runs, and in some they are not."""


def executor(run: Run) -> str:
    """Kill a worker's executors."""

    def fault(run: Run, cluster: Cluster, name: str) -> None:
        _end(_executors(cluster, name))

    return _broken(run, "executors killed", fault)


def worker(run: Run) -> str:
    """Kill a worker and its executors, as a machine goes; start it again."""

    def fault(run: Run, cluster: Cluster, name: str) -> None:
        executors = _executors(cluster, name)
        cluster.kill(name)
        _end(executors)
        cluster.begin(name)

    return _broken(run, "workers killed", fault)


def master(run: Run) -> str:
    """Kill the master; start it again."""

    def fault(run: Run, cluster: Cluster, name: str) -> None:
        cluster.kill("master")
        run.pause(0, 5)
        cluster.begin("master")

    return _broken(run, "masters killed", fault)


def zombie(run: Run) -> str:
    """Stop a worker and its executor until Spark has given them up; let them go on."""
    run.configure(conf=_SOON)

    def fault(run: Run, cluster: Cluster, name: str) -> None:
        doomed = _serving(run, cluster, name)
        if not doomed:
            raise ProofError(f"{name} has no executor to stop")
        stopped = descendants(cluster.pid(name))
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            run.wait_for(lambda: doomed <= _given_up(run), "for the executor to be given up")
            # What it had begun is done by the other one meanwhile.
            run.wait_for_output()
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    return _broken(run, "workers stopped, given up and resumed", fault)


def network(run: Run) -> str:
    """Cut the broker, the driver or a worker off for some seconds, in turn."""
    net = run.hosts
    assert net is not None, "the row has no hosts"
    first, cuts = run.rng.randrange(len(_CUT)), list[str]()

    def fault(run: Run, cluster: Cluster, name: str) -> None:
        kind = _CUT[(first + len(cuts)) % len(_CUT)]
        seconds = run.rng.uniform(*_WITHOUT)
        cuts.append(f"{kind} for {seconds:.0f} s")
        host = name if kind == "worker" else kind
        net.cut(host)
        try:
            time.sleep(seconds)
        finally:
            net.mend(host)

    run.configure(conf=_SOON)
    figures = _broken(run, "networks cut", fault)
    return f"{figures}: {', '.join(cuts)}"


def _serving(run: Run, cluster: Cluster, name: str) -> set[str]:
    """Return a worker's executors that the driver knows of and has not given up."""
    return set(cluster.known(name)) - _given_up(run)


def _given_up(run: Run) -> set[str]:
    lines = run.program.lines()
    return {line["executor"] for line in lines if line.get("msg") == "An executor is gone"}


def _executors(cluster: Cluster, name: str) -> list[int]:
    found = cluster.executors(name)
    if not found:
        raise ProofError(f"{name} has no executor to break")
    return found


def _end(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def _broken(run: Run, what: str, fault: Callable[[Run, Cluster, str], None]) -> str:
    """Let a fault happen to a worker that the seed chooses; see all executors back before."""
    cluster = run.cluster
    assert cluster is not None, "the row has no cluster"
    workers = cluster.names("worker-*")

    def often(run: Run) -> None:
        for _ in range(run.times):
            run.wait_for(
                lambda: all(_serving(run, cluster, one) for one in workers), "for executors"
            )
            run.pause(0, 3)
            fault(run, cluster, run.rng.choice(workers))
            # This may be of before the fault; that the stream goes on, the caller waits for.
            run.wait_for_output()
        failed = sum("micro-batch failed" in text for text in run.program.messages())
        run.injected.append(f"{run.times} {what}, {failed} micro-batches failed")

    return under_load(run, often)
