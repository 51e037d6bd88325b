"""Streams that have ended leave nothing of themselves in Spark's JVM."""

import os
import subprocess
import time
from typing import Any

import pytest

from streamer.spark.compat import FALLBACKS
from streamer.spark.jvm.java import find_java
from streamer.spark.query.idle_worker_monitors import find_idle_monitors
from tests.spark.conftest import Runner

pytestmark = pytest.mark.spark

QUERY = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"


def alive(session: Any, name: str) -> int:
    """How many objects of a class are reachable."""
    pid = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    # A runtime without tools has their module all the same.
    jcmd = [str(find_java(os.environ).executable), "-m", "jdk.jcmd/sun.tools.jcmd.JCmd"]
    command = [*jcmd, str(pid), "GC.class_histogram"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    rows = [line.split() for line in run.stdout.splitlines()]
    return sum(int(row[1]) for row in rows if len(row) > 3 and row[3] == name)


def test_streams_that_have_ended_are_forgotten(session: Any, run_stream: Runner) -> None:
    # Others of the suite may still have theirs.
    before = alive(session, QUERY)
    fallbacks = FALLBACKS.counts()
    for turn in range(4):
        ran = run_stream("{}", stdin=b"one", checkpoint=f"c{turn}")
        assert ran.lines == [b"one"]
    until = time.monotonic() + 30
    while (held := alive(session, QUERY)) > before + 1 or find_idle_monitors(session):
        assert time.monotonic() < until, (before, held, find_idle_monitors(session))
        time.sleep(0.5)
    assert FALLBACKS.counts() == fallbacks
