"""The rows of the proof, each a promise and the fault that might break it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.proof.generator import Shape
from tests.proof.kinds import Counted, Following, Hopping, Limited, Sessions, Walled, Windows
from tests.proof.runner import Length, Run
from tests.proof.scenarios import (
    brokers,
    calls,
    changes,
    checkpoint,
    clock,
    cluster,
    configs,
    events,
    kills,
    secrets,
    surroundings,
    tables,
    waiting,
)
from tests.proof.sinks import Sinks, file_sink, http_sink, plain_sink, transactional_sink
from tests.proof.state import Behind, Emptied, Kept, Latest
from tests.servers.kafka import Broker
from tests.servers.namespaces import Hosts, hosts
from tests.servers.spark_cluster import Cluster, spark_cluster


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        name: as it is called on the command line.
        promise: what must hold.
        fault: what is done.
        run: does it; it returns the figures, or raises `ProofError`.
        windows: of the stream.
        shape: of its events.
        sink: where its windows go.
        workers: of a cluster that it runs on; 0 for this machine.
        apart: whether the broker, the driver and the cluster's parts have hosts of their own, with
            a network between them.
    """

    name: str
    promise: str
    fault: str
    run: Callable[[Run], str]
    windows: Windows = Hopping()
    shape: Shape = Shape()
    sink: Sinks = file_sink
    workers: int = 0
    apart: bool = False

    @property
    def kind(self) -> str:
        """What is broken: each run of the suite has one row of every kind."""
        module = sys.modules[self.run.__module__]
        return next(kind for kind, modules in _KINDS.items() if module in modules)


EXACT = "every event is in exactly its windows, once"
REPEATS = "every event is in exactly its windows, which may be written again completely"
MENDED = "repaired, or refused with an error that names it; never lost silently"
ROWS: tuple[Row, ...] = (
    Row(
        "kill-at-write",
        EXACT + ", even if a window was written but not committed",
        "kill -9 of the driver at the moment when the output grows",
        kills.at_write,
    ),
    Row(
        "kill-driver",
        EXACT,
        "kill -9 of the driver at any moment, also during its start",
        kills.driver,
    ),
    Row(
        "kill-worker",
        EXACT + ", and the program continues by itself",
        "kill -9 of all Python workers at any moment",
        kills.worker,
    ),
    Row(
        "kill-jvm",
        EXACT + "; the program reports the process that ended",
        "kill -9 of Spark's JVM at any moment",
        kills.jvm,
    ),
    Row(
        "sigterm",
        EXACT + "; the exit code is 0",
        "SIGTERM under load, then a start",
        kills.sigterm,
    ),
    Row(
        "offset-log",
        MENDED,
        "the newest file of Spark's offset log is cut",
        checkpoint.offset_log,
    ),
    Row(
        "commit-log",
        MENDED,
        "the newest file of Spark's commit log is cut",
        checkpoint.commit_log,
    ),
    Row(
        "changelog",
        MENDED,
        "the newest changes of the state are cut",
        checkpoint.changelog,
    ),
    Row(
        "snapshot",
        MENDED,
        "the newest snapshots of the state are cut",
        checkpoint.snapshot,
    ),
    Row(
        "broker-term",
        EXACT,
        "SIGTERM of the broker, which is unavailable for some seconds",
        brokers.term,
    ),
    Row(
        "broker-kill",
        EXACT,
        "kill -9 of the broker, which is unavailable for some seconds",
        brokers.kill,
    ),
    Row(
        "broker-stop",
        EXACT + ", for readers of committed messages",
        "SIGSTOP of the broker longer than the delivery timeout; windows go to Kafka",
        brokers.stop,
        sink=transactional_sink,
    ),
    Row(
        "kill-kafka",
        EXACT + ", for readers of committed messages",
        "kill -9 of the driver before and after its transaction is committed",
        kills.at_commit,
        sink=transactional_sink,
    ),
    Row(
        "kill-repeats",
        REPEATS,
        "kill -9 of the driver when records without a transaction are written",
        kills.at_write,
        sink=plain_sink,
    ),
    Row(
        "deploy",
        EXACT + ", including open ones",
        "the mapping is changed under load, with -w",
        changes.deploy,
    ),
    Row(
        "disk-full",
        EXACT + "; the full disk is reported",
        "the disk of the checkpoint is full for a while",
        surroundings.disk_full,
    ),
    Row(
        "dead-sink",
        REPEATS + "; the input waits, and memory does not grow",
        "an HTTP sink refuses everything for a while",
        surroundings.dead_sink,
        sink=http_sink,
    ),
    Row(
        "slow-sink",
        REPEATS + "; the input waits, and memory does not grow",
        "an HTTP sink accepts one window at a time, for a while in half a second each",
        surroundings.slow_sink,
        sink=http_sink,
    ),
    Row(
        "expired",
        "each event is in one window or counted as expired; the input waits, memory does not grow",
        "an HTTP sink refuses everything for longer than `expire_after`",
        surroundings.expired,
        sink=http_sink,
    ),
    Row(
        "retention",
        "messages that Kafka deletes unread are reported; all others are in exactly their "
        "windows, once",
        "Kafka deletes unread messages while the program is down",
        brokers.retention,
    ),
    Row(
        "executor",
        EXACT,
        "kill -9 of an executor of a cluster",
        cluster.executor,
        workers=2,
    ),
    Row(
        "worker",
        EXACT,
        "kill -9 of a worker of a cluster and its executor, which are restarted",
        cluster.worker,
        workers=2,
    ),
    Row(
        "master",
        EXACT,
        "kill -9 of the master of a cluster, which is restarted",
        cluster.master,
        workers=2,
    ),
    Row(
        "zombie",
        EXACT,
        "SIGSTOP of a worker and its executor until Spark has declared them lost, then SIGCONT",
        cluster.zombie,
        workers=2,
    ),
    Row(
        "network",
        EXACT,
        "the network of the broker, the driver or a worker is cut, each on a host of its own",
        cluster.network,
        workers=2,
        apart=True,
    ),
    Row(
        "shuffled",
        EXACT + "; late ones are dropped and counted",
        "events up to 6 s out of order, a tenth 10 s to 60 s late, hopping windows",
        events.shuffled,
        windows=Hopping(size=10, every=5, lateness=3),
        shape=Shape(disorder=6 * 10**9, late=0.1),
    ),
    Row(
        "poison",
        "messages without a valid time are dropped and counted; all others are unaffected",
        "half JSON, invalid UTF-8, NaN, the year 9999, 10 MB",
        events.poison,
        shape=Shape(poison=0.1),
    ),
    Row(
        "silent-partition",
        "windows close by the clock of the others",
        "one partition of four is empty",
        events.plain,
        shape=Shape(partitions=4, silent=frozenset({2})),
    ),
    Row(
        "idle",
        EXACT + ", and none early",
        "no message for ten seconds, then all due messages at once",
        events.idle,
    ),
    Row(
        "backlog",
        "messages that waited in Kafka while the program was down are not late, and windows by the "
        "system clock contain all of them, once",
        "kill -9 of the driver, which stays down until messages for several micro-batches wait; "
        "system_window",
        waiting.down,
        windows=Walled(),
        shape=Shape(live=True, rate=300),
    ),
    Row(
        "sessions",
        EXACT + ", however often sessions were merged and cut",
        "kill -9 of the driver at the moment when the output grows; sessions of 150 keys",
        kills.at_write,
        windows=Sessions(),
        shape=Shape(partitions=1, keys=150, rate=300),
    ),
    Row(
        "limited-sessions",
        EXACT + ", however often sessions were merged, were full or had lasted",
        "kill -9 of the driver at the moment when the output grows; sessions of 30 keys with at "
        "most 20 events",
        kills.at_write,
        windows=Limited(),
        shape=Shape(partitions=1, keys=30, rate=300),
    ),
    Row(
        "sliding",
        "every event is in all its overlapping windows, once",
        "kill -9 of all Python workers at any moment; sliding windows of five seconds",
        kills.worker,
        windows=Following(),
        shape=Shape(partitions=1, rate=200),
    ),
    Row(
        "counted",
        "every event is in exactly its windows, once, and counting continues",
        "kill -9 of the driver at any moment, also during its start; the latest 50 of every 20",
        kills.driver,
        windows=Counted(),
        shape=Shape(partitions=1),
    ),
    Row(
        "behind",
        "every event is in exactly its windows behind windows, once; nothing is late behind them",
        "kill -9 of the driver at the moment when the output grows; windows of seven "
        "seconds behind sessions of 150 keys",
        kills.at_write,
        windows=Behind(),
        shape=Shape(partitions=1, keys=150, rate=300),
    ),
    Row(
        "kept",
        "the state of a key is the result of its events, each once",
        "kill -9 of the driver at any moment, also during its start; `keyed_state` with "
        "`deduplicate`, `throttle`, `lag` and `accumulate`",
        kills.driver,
        windows=Kept(),
        shape=Shape(partitions=1, rate=500),
    ),
    Row(
        "latest",
        "after every micro-batch a changed key is emitted once, with the latest message of each id",
        "kill -9 of the driver at the moment when the output grows; `global_window`",
        kills.at_write,
        windows=Latest(),
        shape=Shape(partitions=1, keys=50, rate=300),
    ),
    Row(
        "emptied",
        EXACT + ", and each window without events is emitted, once",
        "kill -9 of all Python workers at any moment; `empty_windows` of 150 keys",
        kills.worker,
        windows=Emptied(),
        shape=Shape(keys=150, rate=300),
    ),
    Row(
        "table",
        REPEATS + ", with the same version of a table",
        "kill -9 of the driver when records without a transaction are written; a lookup table is "
        "replaced before it starts",
        tables.replaced,
        sink=plain_sink,
    ),
    Row(
        "clock",
        EXACT,
        "the machine's clock is set an hour ahead, two hours back, and back to normal",
        clock.moved,
    ),
    Row(
        "secrets",
        "no secret is in logs, responses of the API, Spark's pages or the checkpoint; " + REPEATS,
        "secrets in fields, a header, a URL, a variable and Spark's settings; "
        "the sink refuses, a kill -9",
        secrets.canaries,
        sink=http_sink,
    ),
    Row(
        "api-calls",
        "streams match the responses, no response is a 500, and removed streams leave nothing",
        "concurrent calls that create, change and remove a service's streams",
        calls.at_once,
    ),
    Row(
        "bad-configs",
        "each is refused with the reason, and a running stream misses nothing",
        "a service receives invalid configs, YAML bombs, and ids with paths",
        configs.refused,
    ),
)
BY_NAME = {row.name: row for row in ROWS}
_KINDS = {
    "process": (kills, tables, waiting),
    "checkpoint": (checkpoint,),
    "broker": (brokers,),
    "cluster": (cluster,),
    "events": (events, clock),
    "surroundings": (surroundings,),
    "service": (calls, changes, configs, secrets),
}


def prove(row: Row, seed: int, length: Length) -> str:
    """Run a row on parts of its own; return its figures.

    Raises:
        AssertionError: the promise was broken, or the row could not be run to its end.
    """
    with tempfile.TemporaryDirectory(prefix=f"proof-{row.name}-") as name:
        place = Path(name)
        with ExitStack() as parts:
            net = parts.enter_context(_apart(row.workers)) if row.apart else None
            at: dict[str, Any] = {}
            if net is not None:
                at = {"host": net.address("broker"), "before": net.inside("broker")}
            cluster = spark_cluster(place, row.workers, net) if row.workers else nullcontext()
            starting = parts.enter_context(_meanwhile(cluster))
            broker = parts.enter_context(Broker(place / "broker", **at))
            sink = parts.enter_context(row.sink(place, broker))
            on = starting.result()
            return row.run(Run(place, seed, length, broker, sink, row.windows, row.shape, on))


@contextmanager
def _meanwhile(part: AbstractContextManager[Cluster | None]) -> Iterator[Future[Cluster | None]]:
    """Start something while others start; end it, once it has started, when the block ends."""
    with ThreadPoolExecutor(1) as thread:
        starting = thread.submit(part.__enter__)
        try:
            yield starting
        finally:
            if starting.exception() is None:
                part.__exit__(None, None, None)


@contextmanager
def _apart(workers: int) -> Iterator[Hosts]:
    """Make hosts for all parts and for the oracle, who is on its own until the block ends."""
    names = ["oracle", "broker", "driver", "master", *(f"worker-{n + 1}" for n in range(workers))]
    with hosts(names) as net, net.entered("oracle"):
        yield net
