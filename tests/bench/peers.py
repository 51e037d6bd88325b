"""The main job in the product, in hand-written PySpark and in Bytewax, on the same files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.bench import answers, machine, report, speed, traffic
from tests.bench.process_tree import Tree
from tests.bench.product import ROOT
from tests.bench.speed import LEFT_OUT, Speed

HOUR_LATER = 3_600.0
MOST = 1_800
"""Seconds that a peer is given for its run."""

SPARK = Path(__file__).with_name("peer_spark.py")


def peers(work: Path, events: int, pace: float, master: str) -> None:
    """Run all three, one after another; check all answers; print rates and ratios."""
    report.heading(f"peers: the main job on the same files, {master}, one after another")
    work = work / "peers"
    report.note("streamer")
    ours, paths = speed.windows(work, events, pace, master, keep=True)
    figures("streamer", ours)
    want = answers.expected(answers.read(paths), 10, 10)
    report.note("PySpark: from_json, watermark, window, collect_set, RocksDB, a file a micro-batch")
    # Windows close when an event moves the watermark beyond them: here it is.
    end = datetime.fromisoformat(max(at for at, _ in want)).timestamp()
    sentinel = next(traffic.chunks(1, end + HOUR_LATER, 1))
    theirs, out = run_pyspark(SPARK, [master], paths, sentinel, work)
    _check(want, out)
    figures("PySpark", theirs)
    report.figure("streamer / PySpark", ours.rate / theirs.rate, "", least=2.5)
    report.note("Bytewax: one process, its fastest way here: between two, each event is pickled")
    theirs, out = run_bytewax("tests.bench.peer_bytewax:flow", [1], paths, work)
    _check(want, out)
    figures("Bytewax", theirs)
    report.figure("streamer / Bytewax", ours.rate / theirs.rate, "", least=2.5)
    shutil.rmtree(work)


def figures(name: str, measured: Speed) -> None:
    """Print what was measured of one of them."""
    report.figure(f"{name}, events a second", measured.rate, "events/s")
    report.figure(f"{name}, CPU for a million events", measured.cpu_per_million, "s")


def _watch(command: list[str], log: Path) -> tuple[Tree, list[dict[str, Any]]]:
    """Run a command to its end; return its process tree and the JSON lines that it printed.

    Raises:
        RuntimeError: it failed, or took longer than `MOST`.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JAVA_HOME": str(machine.java_home()),
        "PYSPARK_PYTHON": sys.executable,
    }
    with log.open("wb") as out:
        running = subprocess.Popen(
            [sys.executable, *command], stdout=out, stderr=out, cwd=ROOT, env=environment
        )
        tree = Tree(running.pid)
        try:
            code = running.wait(MOST)
        except subprocess.TimeoutExpired:
            running.kill()
            raise RuntimeError(f"{command[:2]} takes longer than {MOST} s") from None
        finally:
            tree.stop()
    text = log.read_text(errors="replace")
    if code:
        raise RuntimeError(f"{command[:2]} failed:\n{text[-2000:]}")
    # Spark's messages may stand in front of one on the same line.
    rows = [
        line[line.index("{") :] for line in text.splitlines() if line.endswith("}") and "{" in line
    ]
    return tree, [json.loads(row) for row in rows]


def run_pyspark(
    script: Path, arguments: Sequence[str], paths: list[Path], sentinel: bytes, work: Path
) -> tuple[Speed, list[Path]]:
    """Run a job written in PySpark to its end; return its speed, and its files.

    Args:
        script: is called with the arguments, the files, and directories for output and for itself.
        arguments: what it wants to know besides.
        paths: its input, one file a micro-batch, in this order.
        sentinel: a last line: windows close when an event moves the watermark beyond them.
        work: for its files; there must be none of an earlier run.
    """
    _number_by_time(paths)
    (paths[0].parent / "sentinel.jsonl").write_bytes(sentinel)
    out = work / "pyspark"
    tree, rows = _watch(
        [
            *(str(script), *arguments),
            *(str(paths[0].parent / "*.jsonl"), str(out), str(work / "pyspark-work")),
        ],
        work / "pyspark.log",
    )
    (paths[0].parent / "sentinel.jsonl").unlink()
    ends = [
        datetime.fromisoformat(row["timestamp"]).timestamp()
        + row["durationMs"]["triggerExecution"] / 1e3
        for row in rows
    ]
    counted = sum(row["numInputRows"] for row in rows[LEFT_OUT:])
    first, last = ends[LEFT_OUT - 1], ends[-1]
    cpu = tree.cpu_at(last) - tree.cpu_at(first)
    shutil.rmtree(work / "pyspark-work")
    return Speed(counted, last - first, cpu, len(rows) - LEFT_OUT), sorted(out.glob("*.json"))


def _number_by_time(paths: list[Path]) -> None:
    """Set the files' times a second apart: Spark takes the oldest first."""
    now = time.time()
    for number, path in enumerate(paths):
        os.utime(path, (now, now - len(paths) + number))


def run_bytewax(
    flow: str, arguments: Sequence[str | int], paths: list[Path], work: Path
) -> tuple[Speed, list[Path]]:
    """Run a job written in Bytewax to its end; return its speed, and its file.

    Args:
        flow: module and function, which is called with the files, the output and the arguments.
        arguments: what it wants to know besides.
        paths: its input, all files of their directory.
        work: for its file; there must be none of an earlier run.
    """
    out = work / "bytewax.jsonl"
    out.touch()
    given = ", ".join(map(repr, (str(paths[0].parent / "*.jsonl"), str(out), *arguments)))
    tree, rows = _watch(["-m", "bytewax.run", f"{flow}({given})"], work / "bytewax.log")
    total = rows[-1]["messages"]
    # There are no micro-batches: the first fifth is left out, as two of ten files are above.
    first = next(row for row in rows if row["messages"] >= total / 5)
    last = out.stat().st_mtime
    cpu = tree.cpu_at(last) - tree.cpu_at(first["at"])
    return Speed(total - first["messages"], last - first["at"], cpu, 0), [out]


def lines_of(paths: Iterable[Path]) -> Iterator[bytes]:
    """All lines of files."""
    for path in paths:
        with path.open("rb") as file:
            yield from file


def _check(want: answers.Answers, paths: Iterable[Path]) -> None:
    wrong = answers.differences(want, answers.given(lines_of(paths)))
    if wrong:
        raise RuntimeError(f"the answers are wrong: {wrong}")
    report.note(f"all {len(want):,} answers are right")
