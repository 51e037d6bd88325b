"""CPU, shuffle, checkpoint and memory on a real standalone cluster, by the number of its workers.

Every worker has one core and one executor, all on this machine: so CPU seconds and bytes mean
something, and time does not. The start is left out: CPU counts from the end of the first
micro-batches (`LEFT_OUT`) to the last output, of all processes that the cluster has then.

CPU of an event depends on how busy the machine is: caches and memory are shared. So a cluster of
several workers is held against as many clusters of one worker that run beside each other.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.bench import answers, event_log, jobs, report, sizing, traffic
from tests.bench.event_log import Task
from tests.bench.peers import lines_of
from tests.bench.process_tree import Tree
from tests.bench.product import ROOT, Product, product
from tests.bench.windows import jobs as by_event_time
from tests.bench.windows.lights import differences
from tests.servers.spark_cluster import Cluster, spark_cluster

LEFT_OUT = 3
"""Micro-batches at the beginning that are not measured: Python and Java of all workers warm up."""

AHEAD = 7 * 24 * 3600
"""Seconds by which events are ahead of the clock: system_window lets them out at the end."""

LIVE = 30_000
"""Events of the job that keeps up."""

FILES = 10
MIB = 2**20

GROWTH = 1.15
"""What CPU for a million events may become from one worker to four, of what it was."""

SHUFFLED = 30
"""Bytes that an event may cost in the shuffle."""

Config = Callable[[Path, Path, str], str]
"""Makes a config of the files' pattern, the output and the master."""

Check = Callable[[Sequence[Path], Iterable[bytes]], str]


@dataclass(frozen=True)
class Job:
    """What is measured: a config, and what says what is wrong with its output."""

    config: Config
    check: Check


@dataclass(frozen=True)
class Measured:
    """What a job took on so many workers.

    Attributes:
        workers: with one core each.
        events: that were measured.
        seconds: from the first that is measured to the last.
        micro_batches: that were measured.
        cpu: CPU seconds by part of the cluster.
        shuffled: bytes written for the shuffle.
        state: bytes by which the state in the checkpoint grew, older versions included.
        memory: bytes of a worker at its peak, by kind of process; shared pages count once.
        tasks: all of Spark's tasks that were measured.
    """

    workers: int
    events: int
    seconds: float
    micro_batches: int
    cpu: Mapping[str, float]
    shuffled: int
    state: int
    memory: Mapping[str, int]
    tasks: Sequence[Task]

    @property
    def cpu_per_million(self) -> float:
        """CPU seconds of all processes for a million events."""
        return sum(self.cpu.values()) / self.events * 1e6


def _traffic_light(files: Path, out: Path, master: str) -> str:
    return jobs.windowed(files, out, "10s", master=master)


def _tumbling(files: Path, out: Path, master: str, whole: bool = False) -> str:
    buffer = by_event_time.lights("tumbling_window")
    return by_event_time.from_files(files, buffer, by_event_time.LIGHT, out, master, whole=whole)


def _live(files: Path, out: Path, master: str) -> str:
    text = jobs.live("10s").replace("interval: 1ms", f"interval: 1ms\n    count: {LIVE}")
    return text + jobs.TO_FILE.format(path=out) + jobs.spark(master)


def _counted(paths: Sequence[Path], lines: Iterable[bytes]) -> str:
    """See that each event's passengers, of which one to five came, are in one line or another."""
    passengers = sum(json.loads(line)["passengers"] for line in lines)
    return "" if LIVE <= passengers <= 5 * LIVE else f"{passengers} passengers of {LIVE} events"


def _system_windows(paths: Sequence[Path], lines: Iterable[bytes]) -> str:
    return answers.differences(answers.expected(answers.read(paths), 10, 10), answers.given(lines))


def _event_time_windows(paths: Sequence[Path], lines: Iterable[bytes]) -> str:
    return differences(list(paths), by_event_time.SIZE, lines)


JOBS: Mapping[str, Job] = {
    "traffic_light": Job(_traffic_light, _system_windows),
    "tumbling": Job(_tumbling, _event_time_windows),
    "live": Job(_live, _counted),
    "whole": Job(lambda *given: _tumbling(*given, whole=True), _event_time_windows),
}
"""The main job; a window of each traffic light, folded; 1,000 events a second, as they come, where
micro-batches are small; and a window of each light with whole messages."""


def cluster(
    work: Path,
    events: int,
    pace: float,
    workers: Sequence[int],
    names: Sequence[str],
    conf: Mapping[str, str],
) -> None:
    """Run jobs on clusters of so many workers, one after another, and print what they took.

    Args:
        work: for files.
        events: of the workload.
        pace: events in a second of event time.
        workers: how many, for each cluster.
        names: of `JOBS`.
        conf: Spark's settings, to try what they change.
    """
    report.heading(f"cluster: {events:,} events, {', '.join(map(str, workers))} workers of a core")
    report.note(
        f"the first {LEFT_OUT} micro-batches are left out, and so is the start; CPU is that of all "
        "processes, from /proc; bytes shuffled are those of all tasks, from Spark's event log"
    )
    origin = time.time() // 10 * 10 + AHEAD
    paths = traffic.write(work / "files", events, FILES, origin, pace)
    found: dict[str, list[Measured]] = {name: [] for name in names}
    for count in workers:
        for name in names:
            measured = _cluster(count, JOBS[name], paths, work, conf)
            found[name].append(measured)
            _tell(name, measured)
    for name, rows in found.items():
        _compare(name, rows)
    for name in names:
        _beside(work, name, paths, found[name], conf)
    shutil.rmtree(work / "files")


def _beside(
    work: Path, name: str, paths: list[Path], rows: Sequence[Measured], conf: Mapping[str, str]
) -> None:
    """Hold clusters of several workers against that many of one worker beside each other.

    More than two for each core make the machine no busier, and need memory.
    """
    alone: dict[int, float] = {}
    for row in rows:
        many = min(row.workers, 2 * (os.cpu_count() or 1))
        if many == 1:
            continue
        if many not in alone:
            alone[many] = _alone(many, JOBS[name], paths, work, conf)
            text = f"{name}, {many} clusters of 1 worker beside each other: CPU for a million"
            report.figure(text, alone[many], "s")
        grown = row.cpu_per_million / alone[many]
        text = f"{name}: CPU at {row.workers} workers / of {many} beside each other"
        report.figure(text, grown, most=GROWTH)


def _alone(many: int, job: Job, paths: list[Path], work: Path, conf: Mapping[str, str]) -> float:
    """Return the CPU seconds for a million events of clusters that share the machine."""

    def one(number: int) -> float:
        return _cluster(1, job, paths, work / f"beside-{number}", conf).cpu_per_million

    with ThreadPoolExecutor(many) as pool:
        return sum(pool.map(one, range(many))) / many


def _cluster(
    workers: int, job: Job, paths: list[Path], work: Path, conf: Mapping[str, str]
) -> Measured:
    """Run a job on a cluster of its own."""
    place = work / f"cluster-{workers}"
    with spark_cluster(place, workers) as running:
        found = _measured(running, workers, job, paths, work / "run", conf)
    shutil.rmtree(place)
    return found


def _measured(
    running: Cluster,
    workers: int,
    job: Job,
    paths: list[Path],
    work: Path,
    conf: Mapping[str, str],
) -> Measured:
    log, out = work / "log", work / "run" / "out.jsonl"
    log.mkdir(parents=True)
    text = job.config(paths[0].parent / "*.jsonl", out, running.url) + _settings(workers, log, conf)
    names = ["master", *(f"worker-{number + 1}" for number in range(workers))]
    trees = {name: Tree(running.pid(name), 1.0, shared=True) for name in names}
    try:
        with product(text, work / "run", every=0.5) as run:
            run.wait(600)
    finally:
        for tree in trees.values():
            tree.stop()
    wrong = job.check(paths, lines_of([out]))
    if wrong or run.delivered[-1].dropped:
        raise RuntimeError(f"the answers are wrong: {wrong}{run.course()}")
    found = _figures(run, workers, trees, event_log.tasks(log))
    shutil.rmtree(work)
    return found


def _settings(workers: int, log: Path, more: Mapping[str, str]) -> str:
    """Return what the `spark` section has besides: all that is on this machine need not travel."""
    conf = {
        **event_log.settings(log),
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.pyspark.python": sys.executable,
        **more,
    }
    return f"  shards: {workers}\n  environment: installed\n  conf: {json.dumps(conf)}\n"


def _figures(
    run: Product, workers: int, trees: Mapping[str, Tree], tasks: Sequence[Task]
) -> Measured:
    filled = run.filled()
    if len(filled) <= LEFT_OUT:
        raise RuntimeError(
            f"only {len(filled)} micro-batches brought events, of which {LEFT_OUT} are not "
            "measured: use more --events"
        )
    first = filled[LEFT_OUT - 1]
    last = max([*filled, *(d for d in run.delivered if d.bytes)], key=lambda d: d.at)
    cpu = {
        "driver": run.tree.cpu_at(last.at) - run.tree.cpu_at(first.at),
        "executors' JVM": 0.0,
        "Python": 0.0,
        "what these forked": 0.0,
        "master, workers": 0.0,
    }
    for tree in trees.values():
        cpu["master, workers"] += _spent(tree, "driver", first.at, last.at)
        cpu["executors' JVM"] += _spent(tree, "java", first.at, last.at)
        cpu["what these forked"] += _spent(tree, "ended", first.at, last.at)
        cpu["Python"] += _spent(tree, "", first.at, last.at)
    samples = [s for name, tree in trees.items() if name != "master" for s in tree.samples]
    peak = max(samples, key=lambda sample: sample.memory - sample.rss["driver"]).rss
    measured = event_log.between(tasks, first.at, last.at)
    return Measured(
        workers,
        last.messages - first.messages,
        last.at - first.at,
        len([d for d in run.delivered if first.at < d.at <= last.at]),
        cpu,
        sum(task.written for task in measured),
        _size_at(run, last.at) - _size_at(run, first.at),
        {kind: size for kind, size in peak.items() if kind != "driver"},
        measured,
    )


_NAMED = ("driver", "java", "ended")


def _spent(tree: Tree, kind: str, first: float, last: float) -> float:
    """Return the CPU seconds of a kind of process; of all that is not named here for ""."""

    def at(moment: float) -> float:
        cpu = tree.cpu_of_at(moment)
        if kind:
            return cpu.get(kind, 0.0)
        return sum(value for name, value in cpu.items() if name not in _NAMED)

    return at(last) - at(first)


def _size_at(run: Product, at: float) -> int:
    return next((size for when, size in run.state if when >= at), run.state[-1][1])


def _tell(name: str, found: Measured) -> None:
    workers = f"{name}, {found.workers} workers"
    millions = found.events / 1e6
    report.figure(f"{workers}: CPU for a million", found.cpu_per_million, "s")
    parts = ", ".join(f"{part} {value / millions:.2f}" for part, value in found.cpu.items())
    report.note(f"{parts}; {found.micro_batches} micro-batches, {len(found.tasks)} tasks")
    each = sum(found.cpu.values()) / found.micro_batches
    report.figure(f"{workers}: CPU for a micro-batch", each, "s")
    _times(found)
    report.figure(f"{workers}: shuffled", found.shuffled / found.events, "B/event", most=SHUFFLED)
    report.figure(f"{workers}: into the checkpoint", found.state / found.events, "B/event")
    kinds = ", ".join(f"{kind} {size / MIB:,.0f}" for kind, size in sorted(found.memory.items()))
    report.figure(f"{workers}: memory of one", sum(found.memory.values()) / MIB, "MiB")
    report.note(kinds)


def _times(found: Measured) -> None:
    """Say where the time of a micro-batch goes: reading, keeping, and what is neither."""
    reading = [task for task in found.tasks if not task.fetched]
    keeping = [task for task in found.tasks if task.fetched]
    sums = [sum(task.ended - task.began for task in some) for some in (reading, keeping)]
    each = [value / found.micro_batches for value in (found.seconds, *sums)]
    report.note(
        f"a micro-batch takes {each[0]:.2f} s, its tasks that read {each[1]:.2f} s in all, its "
        f"tasks that keep {each[2]:.2f} s in all"
    )


def _compare(name: str, rows: Sequence[Measured]) -> None:
    by_workers = {row.workers: row.cpu_per_million for row in rows}
    if 1 in by_workers:
        for count in sorted(by_workers.keys() - {1}):
            grown = by_workers[count] / by_workers[1]
            report.figure(f"{name}: CPU at {count} workers / at 1, which has the machine", grown)
    if name == "traffic_light":
        for row in rows:
            load = sizing.Load(most=row.events // row.micro_batches)
            said = sizing.cpu_per_million(sizing.MEASURED, load, row.workers)
            off = abs(said / row.cpu_per_million - 1)
            text = f"{name}, {row.workers} workers: the prediction {said:.2f} s is off by"
            # It is for workers that have a core each.
            most = sizing.TOLERANCE if row.workers <= (os.cpu_count() or 1) else None
            report.figure(text, off, most=most)
