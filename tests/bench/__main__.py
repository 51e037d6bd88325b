"""Measures streamer as a process, from outside. By hand: `python -m tests.bench --help`.

    pip install -e '.[java,bench]'
    python -m tests.bench throughput              # 20 M events, about three minutes
    python -m tests.bench throughput --events 6000000 --pace 300000
    python -m tests.bench windows --kinds session,each --alone
    python -m tests.bench all --work /var/tmp/bench

Each part prints the machine, its figures, and the target where the project has one. Answers are
checked; a wrong one, or a dropped event, ends the program with exit code 1.

    throughput  the main job, catching up: events/s, CPU seconds per million, state on disk
    stateless   a mapping from files to nothing
    sliding     windows of ten slides, against tumbling ones
    memory      does memory grow while a window fills, and by how much when it is released?
    latency     one message: requests and where their time goes, a mapping by rate, windows after
                their close, beside bare Spark and Benthos; kill -9; the knee of a mapping
    idle        cores that a stream takes to which nothing comes
    start       from Enter to the first message, beside a bare session of Spark
    peers       the main job written by hand in PySpark and in Bytewax, on the same files
    compare     windows of each light in this and in --peer, on the same events; not one of `all`
    windows     the kinds of windows by event time, one by one; see below
    kafka       the main job's windows filled from topics, against files, by --partitions, --bytes
                and --codec; a broker beside it
    kafka_soak  --rate events a second for --minutes: latency, memory and threads a minute, idle
    kafka_questions  ends of 1, 12, 200 partitions: CPU, latency, imports, threads; 1 minute
    http_server requests of one message, and bodies of many lines, into a running program
    processors  a pipeline of ten processors against the sum of its parts
    mappings    five mappings against hand-written Python, rate on one core, compile and load time
    cluster     a standalone cluster of --workers workers with one core each: CPU seconds per
                million events, bytes shuffled and checkpointed per event, memory of a worker
    load        how late output is by the rate of events, up to the knee, for windows and a mapping;
                3 minutes
    growth      CPU for a million events by keys, shards and size of windows
    keys        many keys: CPU of an event and of a result, state and memory, by kinds of windows
    soak        --minutes at 70 % of the knee: what grows; not one of `all`
    aggregates  each aggregate: CPU of an event in stage 1, bytes of state of a key, without Spark
    columns     fields read as columns against messages parsed one by one, without Spark
    python      functions in Python beside a mapping, by annotation, without Spark
    stages      the main job's two stages by --workers workers, without Spark, and so beyond 8
    sql_windows `duckdb` against mappings over --batches windows of 10,000 messages, without Spark
    tables      rows and windows into Delta, Iceberg and Parquet against a file; 3 minutes
    micro_batch --batches of one message each: wall time by Spark's phases, CPU by thread; 1 minute

`system_window` follows the system clock, so events have to have times that pass while the stream
runs. The files are written ahead with `--pace` events to a second of event time, the first second
twelve seconds after the launch. They are read as fast as the machine can, ahead of the clock if it
is fast; but a pace above what it manages makes events late, which is refused. So: a pace at or a
little below the rate that is measured. What is open at the end of the files is flushed, and counts.
Windows that come late because a micro-batch takes long are kept (`on_expired: keep`).

`compare` gives a slow peer fewer events, so that it is done in a minute. One that is not installed
beside the product, since its requirements do not fit with ours or are many, gets an environment of
its own below `~/.cache/streamer/peers`, 3 GB for all of them:

    compare --peer bytewax
    compare --peer streamer,pyspark,bytewax,quix,pathway,tenzir

`latency` measures what `--of` names; each of these takes three minutes at most:

    latency --of floor,requests,stateless               beside bare Spark
    latency --of windows --sizes 1 --plots drawings     figures and drawing keep what else is there

`windows` measures what `--kinds` names, and gives the peers the first events of the same files:

    tumbling    a window of each light: events/s, and the peers
    hopping     ten windows hold each event: folded against tumbling, whole against whole, peers
    system      a window of each light against system_window, on files whose times pass (`--pace`)
    session     a million users, ten events each, in bursts: events/s, and the peers
    each        `emit: each`: a line for every event
    join        two files with up to 5 M events each
    release     a window of `--held` events in 1,000 groups: its release, and its state on disk

The figures of each, on a quiet machine with two cores:

    windows --kinds join --events 5000000                   both sides read, 3 minutes
    windows --kinds release --held 5000000                  three windows filled, 10 minutes
    windows --kinds tumbling,hopping --events 5000000       with both peers, 15 minutes
    windows --kinds session --events 10000000               a million keys, both peers, 15 minutes
    windows --kinds session --events 10000000 --alone       a million keys, 4 minutes
    windows --kinds system --events 6000000 --pace 300000   against system_window, 4 minutes

It writes about 3 GB into `--work` for 20 M events, and removes it. Run it on a quiet machine; the
load at the beginning is printed. `python -m tests.bench.kernel` measures the window kernel alone.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench import (
    aggregates,
    cluster,
    columns,
    compare,
    http_requests,
    idle,
    kafka,
    kafka_questions,
    kafka_soak,
    machine,
    mappings,
    memory,
    micro_batch,
    peers,
    pipelines,
    python_functions,
    report,
    speed,
    sql_windows,
    stages,
    start,
    tables,
)
from tests.bench.latency import parts as latencies
from tests.bench.latency import streams
from tests.bench.load import growth, keys, plots, ramp, soak
from tests.bench.load import live as loaded
from tests.bench.windows import kinds
from tests.bench.windows.settings import Settings

PARTS = (
    "throughput",
    "stateless",
    "sliding",
    "memory",
    "latency",
    "idle",
    "start",
    "peers",
    "compare",
    "windows",
    "kafka",
    "kafka_questions",
    "kafka_soak",
    "http_server",
    "processors",
    "mappings",
    "cluster",
    "load",
    "growth",
    "keys",
    "soak",
    "aggregates",
    "stages",
    "columns",
    "python",
    "micro_batch",
    "sql_windows",
    "tables",
)
APART = "compare", "soak", "kafka_soak"
"""Parts that run only when they are asked for: what others have made is installed, or it takes
half an hour or more."""


def asked(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; end the program when it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("parts", nargs="+", choices=(*PARTS, "all"), metavar="part", help=", ".join(PARTS))
    add("--events", type=int, default=20_000_000, help="of the workload (default %(default)s)")
    add("--pace", type=float, default=400_000, help="events per second of event time (%(default)s)")
    add("--sliding-pace", type=float, help="the same for sliding windows (a fifth of --pace)")
    add("--held", type=int, default=5_000_000, help="memory, release: events in it (%(default)s)")
    add(
        "--rate",
        type=float,
        help="memory, soaks: events fed a second (150000, 70 %% of the knee, 50000)",
    )
    add("--minutes", type=float, default=45, help="soaks: how long (%(default)s)")
    add("--step", type=float, default=8, help="load, soak: seconds of a rate (%(default)s)")
    add("--plots", type=Path, help="latency, load, growth, soak: a directory for drawings")
    add("--of", type=latencies_of, default=latencies.PARTS, help="latency: all of them, or some")
    add("--pages", type=Path, nargs="+", default=(), help="latency, load: docs to fill")
    add("--sizes", type=counts_of, default=streams.SIZES, help="latency: of windows, s; 1,10,60")
    add("--seconds", type=float, default=60, help="idle: how long is measured (%(default)s)")
    add("--requests", type=int, default=60_000, help="http_server: single ones (%(default)s)")
    add("--lines", type=int, default=4_000_000, help="http_server: in bodies (%(default)s)")
    add("--partitions", type=counts_of, default=(4,), help="kafka: of topics, 1,12,200 (4)")
    add("--bytes", type=counts_of, default=(0,), help="kafka: of an event, 1000,100000 (as it is)")
    add("--codec", type=codecs_of, default=("none",), help="kafka: " + ",".join(kafka.CODECS))
    add("--runs", type=int, default=10, help="start: how often (%(default)s)")
    add("--batches", type=int, default=150, help="micro_batch: how many (%(default)s)")
    add("--master", default="local[2]", help="Spark's master (%(default)s)")
    add("--whole", action="store_true", help="windows keep messages, as if nothing folded")
    add("--kinds", type=kinds_of, default=kinds.KINDS, help="windows: " + ",".join(kinds.KINDS))
    add("--alone", action="store_true", help="windows: leave the peers out")
    add(
        "--workers", type=counts_of, default=(1, 2, 4, 8), help="cluster, stages: how many, 1,2,4,8"
    )
    add(
        "--jobs",
        type=jobs_of,
        default=("traffic_light",),
        help="cluster: " + ",".join(cluster.JOBS),
    )
    add("--conf", action="append", default=[], help="cluster: a setting of Spark's, NAME=VALUE")
    add("--peer", type=peers_of, default=compare.NAMES, help="compare: " + ",".join(compare.NAMES))
    add("--work", type=Path, help="a directory for files, some GB (a new one in /tmp)")
    return parser.parse_args(arguments)


def kinds_of(text: str) -> tuple[str, ...]:
    """Read names of kinds of windows; raise ArgumentTypeError at one that there is not."""
    found = tuple(text.split(","))
    unknown = set(found) - set(kinds.KINDS)
    if unknown:
        raise argparse.ArgumentTypeError(
            f"there is no kind {', '.join(sorted(unknown))}; there are {', '.join(kinds.KINDS)}"
        )
    return found


def peers_of(text: str) -> tuple[str, ...]:
    """Read names of peers; raise ArgumentTypeError at one that there is not."""
    try:
        return compare.names_of(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None


def latencies_of(text: str) -> tuple[str, ...]:
    """Read names of parts of `latency`; raise ArgumentTypeError at one that there is not."""
    found = tuple(text.split(","))
    if unknown := set(found) - set(latencies.PARTS):
        raise argparse.ArgumentTypeError(
            f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(latencies.PARTS)}"
        )
    return found


def counts_of(text: str) -> tuple[int, ...]:
    """Read numbers, with commas between them."""
    return tuple(map(int, text.split(",")))


def codecs_of(text: str) -> tuple[str, ...]:
    """Read names of compressions; raise ArgumentTypeError at one that there is not."""
    found = tuple(text.split(","))
    if unknown := set(found) - set(kafka.CODECS):
        raise argparse.ArgumentTypeError(
            f"there is no codec {', '.join(sorted(unknown))}; there are {', '.join(kafka.CODECS)}"
        )
    return found


def jobs_of(text: str) -> tuple[str, ...]:
    """Read names of the cluster's jobs; raise ArgumentTypeError at one that there is not."""
    found = tuple(text.split(","))
    if unknown := set(found) - set(cluster.JOBS):
        raise argparse.ArgumentTypeError(
            f"there is no job {', '.join(sorted(unknown))}; there are {', '.join(cluster.JOBS)}"
        )
    return found


def _run(part: str, a: argparse.Namespace, work: Path) -> None:
    if part == "throughput":
        speed.throughput(work, a.events, a.pace, a.master, a.whole)
    elif part == "stateless":
        speed.stateless(work, a.events, a.master)
    elif part == "sliding":
        speed.sliding(work, a.events, a.pace, a.sliding_pace or a.pace / 5, a.master, a.whole)
    elif part == "memory":
        memory.memory(work, a.held, a.rate or 150_000, a.master, a.whole)
    elif part == "latency":
        settings = latencies.Settings(a.of, a.sizes, a.master, a.plots, a.pages)
        latencies.latency(work / "latency", settings)
    elif part == "idle":
        idle.idle(work, a.seconds, a.master)
    elif part == "start":
        start.start(work, a.runs, a.master)
    elif part == "peers":
        peers.peers(work, a.events, a.pace, a.master)
    elif part == "compare":
        compare.compare(work, a.events, a.peer, a.master)
    elif part == "windows":
        kinds.windows(work, Settings(a.events, a.pace, a.master, a.held, a.alone), a.kinds)
    elif part == "kafka_questions":
        kafka_questions.kafka_questions(work)
    elif part == "kafka":
        cases = kafka.Cases(a.partitions, a.bytes, a.codec)
        kafka.kafka(work, a.events, a.pace, a.master, cases)
    elif part == "kafka_soak":
        kafka_soak.kafka_soak(work / "soak", a.rate or 50_000, a.minutes, a.master)
    elif part == "http_server":
        http_requests.http_requests(work, a.requests, a.lines)
    elif part in ("processors", "mappings"):
        {"processors": pipelines.pipelines, "mappings": mappings.mappings}[part]()
    elif part == "load":
        _load(work, a.step, a.plots, a.pages)
    elif part == "keys":
        keys.keys(work / "keys", a.master)
    elif part == "growth":
        found = growth.growth(work / "growth", a.events, a.master)
        if a.plots:
            plots.draw_growth(a.plots / "growth.svg", found)
    elif part == "soak":
        rate = a.rate or 0.7 * ramp.knee(ramp.ramp(work / "ramp", loaded.WINDOWS, a.step)).rate
        soak.soak(work / "soak", rate, 60 * a.minutes, a.plots and a.plots / "soak.svg")
    elif part == "aggregates":
        aggregates.aggregates(min(a.events, 200_000))
    elif part == "sql_windows":
        sql_windows.sql_windows(a.batches)
    elif part in ("columns", "python"):
        bounded = {"columns": columns.columns, "python": python_functions.python_functions}
        bounded[part](work, min(a.events, 600_000))
    elif part == "stages":
        stages.stages(work, a.workers, a.pace)
    elif part == "tables":
        tables.tables(work, min(a.events, 4_000_000), a.pace, a.master)
    elif part == "micro_batch":
        micro_batch.micro_batch(work, a.batches, warm=100)
    elif part == "cluster":
        cluster.cluster(
            work, a.events, a.pace, a.workers, a.jobs, dict(c.split("=", 1) for c in a.conf)
        )


def _load(work: Path, seconds: float, drawings: Path | None, pages: Sequence[Path]) -> None:
    windows = ramp.ramp(work / "windows", loaded.WINDOWS, seconds)
    passing = ramp.ramp(work / "passing", loaded.PASSING, seconds)
    if drawings:
        plots.draw_ramp(drawings / "load.svg", windows, passing)
    for page in pages:
        page.write_text(ramp.fill_page(page.read_text(), windows, passing))


def main() -> int:
    """Run what was asked for; return the exit code."""
    a = asked(sys.argv[1:])
    # So that what runs is ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    every = [part for part in PARTS if part not in APART]
    parts = every if "all" in a.parts else a.parts
    if a.work:
        a.work.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="streamer-bench-", dir=a.work))
    failed = 0
    print(machine.describe())
    try:
        for part in parts:
            try:
                _run(part, a, work)
            except RuntimeError as e:
                failed = 1
                report.note(f"FAILED: {e}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
