"""From Enter to the first message, beside the least that a Spark program can do.

The peer is a bare session of Spark with default settings and one micro-batch of its `rate` source
into `foreachBatch`. Both run in turn, so that what else the machine does meets both alike.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from tests.bench import report

_BARE = """
import os, threading
from pyspark.sql import SparkSession

done = threading.Event()


def show(frame, number):
    print(frame.collect(), flush=True)
    done.set()


spark = SparkSession.builder.master({master!r}).getOrCreate()
spark.readStream.format("rate").load().writeStream.foreachBatch(show).start()
done.wait()
os._exit(0)
"""

_MESSAGE: Mapping[str, object] = {
    "input": {"generate": {"count": 1, "interval": "", "mapping": "root.n = 1"}},
    "output": {"stdout": {}},
}

_WINDOW: Mapping[str, object] = {
    "input": {"generate": {"count": 1000, "interval": "", "mapping": 'root.n = count("n")'}},
    "buffer": {"tumbling_window": {"timestamp_mapping": "root = this.n", "size": "10s"}},
    "pipeline": {"processors": [{"mapping": 'root.sum = json("n").from_all().sum()'}]},
    "output": {"stdout": {}},
}

_TIMEOUT_S = 180.0
_FIRST_MESSAGE_S = 5.0
_RATIO = 0.5


def first_output(command: Sequence[str], directory: Path) -> float:
    """Run a program, and return the seconds until it writes to its standard output.

    Raises:
        RuntimeError: it ended without a word, or has not written in three minutes.
    """
    began = time.monotonic()
    with (directory / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, cwd=directory, start_new_session=True
        )
    assert process.stdout is not None
    stop = time.monotonic() + _TIMEOUT_S
    os.set_blocking(process.stdout.fileno(), False)
    first = b""
    try:
        while not first:
            try:
                first = os.read(process.stdout.fileno(), 1)
            except BlockingIOError:
                time.sleep(0.005)
                if time.monotonic() < stop:
                    continue
            if not first:
                text = (directory / "stderr").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{command[0]} wrote nothing:\n{text}")
        took = time.monotonic() - began
        process.wait(_TIMEOUT_S)
        return took
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def start(work: Path, runs: int, master: str) -> None:
    """Measure starts of this program and of a bare session of Spark, in turn."""
    report.heading(f"start: from Enter to the first message on the standard output, {master}")
    directory = work / "start"
    directory.mkdir(parents=True)
    bare = directory / "bare.py"
    bare.write_text(_BARE.format(master=master))
    commands = {"bare": [sys.executable, str(bare)]}
    for name, config in (("message", _MESSAGE), ("window", _WINDOW)):
        file = directory / f"{name}.yaml"
        whole = {"http": {"enabled": False}, "spark": {"master": master}, **config}
        file.write_text(yaml.safe_dump(whole))
        program = [sys.executable, "-m", "streamer.cli.main", "-c", str(file)]
        commands[name] = [*program, "--checkpoint", str(directory / "checkpoint")]
    took: dict[str, list[float]] = {name: [] for name in commands}
    # The first of each is not counted: it finds neither files in memory nor an archive of classes.
    for number in range(runs + 1):
        for name, command in commands.items():
            shutil.rmtree(directory / "checkpoint", ignore_errors=True)
            seconds = first_output(command, directory)
            if number:
                took[name].append(seconds)
    for name, text in (
        ("bare", "a bare session, one micro-batch of rate"),
        ("message", "streamer, one message"),
        ("window", "streamer, a window"),
    ):
        report.note(f"{text}, s: " + " ".join(f"{value:.1f}" for value in took[name]))
    median = {name: report.quantile(values, 0.5) for name, values in took.items()}
    report.figure("bare Spark, median", median["bare"], "s")
    report.figure("first message, median", median["message"], "s", most=_FIRST_MESSAGE_S)
    report.figure("first window, median", median["window"], "s")
    pairs = sorted(
        ours / theirs for ours, theirs in zip(took["message"], took["bare"], strict=True)
    )
    report.figure("ratio to bare Spark, median of pairs", report.quantile(pairs, 0.5), most=_RATIO)
    report.figure("ratio to bare Spark, worst", pairs[-1])
