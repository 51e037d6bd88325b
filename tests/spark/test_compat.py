"""What is done without a private part of Spark is counted, and logged once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError

from streamer.components.metrics.metric_names import METRICS
from streamer.spark.compat import FALLBACKS, Fallback, Fallbacks, note_missing_modules
from streamer.spark.fork_server import fork_client
from streamer.spark.fork_server.fork_server import ForkServer
from streamer.spark.fork_server.worker_daemon import import_modules
from streamer.spark.query.idle_worker_monitors import interrupt_monitors


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, Mapping[str, Any]]] = []

    def __call__(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        self.lines.append((level, text, fields))


def test_each_kind_is_counted_and_logged_once() -> None:
    fallbacks, log = Fallbacks(), Log()
    fallbacks.log_new(log)
    assert log.lines == [] and set(fallbacks.counts().values()) == {0}
    for reason in ("the first", "another"):
        fallbacks.add(Fallback.UNKNOWN_MONITORS, reason)
        fallbacks.log_new(log)
    assert fallbacks.counts()[Fallback.UNKNOWN_MONITORS] == 2
    [(level, text, fields)] = log.lines
    assert (level, fields) == ("WARN", {"metric": "spark_unknown_monitors_total"})
    assert "(the first)" in text and "PySpark" in text


def test_each_kind_has_a_metric_that_is_documented() -> None:
    assert set(Fallbacks().counts()) <= set(METRICS)


def test_a_module_that_is_renamed_is_noted_and_the_others_are_imported_all_the_same() -> None:
    fallbacks, log = Fallbacks(), Log()
    names = ("json", "pyspark.sql.nowhere", "nowhere.at_all")
    note_missing_modules(names, fallbacks)
    import_modules(names)
    fallbacks.log_new(log)
    assert fallbacks.counts()[Fallback.MISSING_MODULE] == 2
    assert "pyspark.sql.nowhere" in log.lines[0][1]


def test_a_python_that_could_not_be_forked_is_counted_by_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start_whole(path: str, arguments: list[str]) -> None:
        started.append(arguments[1:])

    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", start_whole)
    before = FALLBACKS.counts()[Fallback.UNFORKED_PYTHON]
    forks = ForkServer(os.environ)  # it is not started, and listens no more: none is forked
    forks._listener.close()
    try:
        monkeypatch.setenv(fork_client.SOCKET_VARIABLE, forks.path)
        arguments = ["-m", fork_client.PLANNERS[0]]
        fork_client.main(arguments)
        assert started == [arguments]
        assert FALLBACKS.counts()[Fallback.UNFORKED_PYTHON] == before + 1
    finally:
        forks.close()
    # What was counted stays so when the file is gone.
    assert FALLBACKS.counts()[Fallback.UNFORKED_PYTHON] == before + 1


class Java:
    """Answers every name and call as a JVM does that has no such threads, or no such method."""

    def __init__(self, threads: list[Any] | None, alive: bool = True) -> None:
        self.threads, self.alive = threads, alive
        self.pythonExec, self.master = "python3", "local[2]"
        self._jvm = self.org = self.apache = self.commons = self.lang3 = self.ThreadUtils = self
        self.sparkContext = self._jsc = self

    def findThreadsByName(self, name: str) -> Java:
        if self.threads is None:
            raise Py4JError("findThreadsByName does not exist in the JVM")
        return self

    def toArray(self) -> list[Any]:
        assert self.threads is not None
        return self.threads

    def sc(self) -> Java:
        return self

    def isStopped(self) -> bool:
        if not self.alive:
            raise Py4JError("no JVM")
        return False


@pytest.mark.parametrize(
    ("java", "tasks_ran", "number"),
    [
        (Java([]), True, 1),
        (Java([]), False, 0),
        (Java(None), False, 1),
        (Java(None, alive=False), True, 0),
    ],
    ids=["none is there", "no task ran", "the JVM knows no such method", "the JVM has gone"],
)
def test_threads_that_are_not_found_are_counted(java: Any, tasks_ran: bool, number: int) -> None:
    fallbacks = Fallbacks()
    interrupt_monitors(java, tasks_ran=tasks_ran, fallbacks=fallbacks)
    assert fallbacks.counts()[Fallback.UNKNOWN_MONITORS] == number
