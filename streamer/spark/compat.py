"""Private parts of Spark and py4j in one place, and what is done where one of them is missing.

Each is named in `tests/spark/test_private_api.py`, which fails readably with another PySpark. What
can do without such a part goes on more slowly: it is counted here, for a metric, and the log has a
line for the first of each kind.
"""

from __future__ import annotations

import importlib.util
import subprocess
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamer.core.log_format import LogLine

if TYPE_CHECKING:
    # Python's processes are forked from one that is started before PySpark is imported.
    from pyspark import SparkContext

_JVM_EXIT_TIMEOUT_S: Final = 10.0


class Fallback(StrEnum):
    """A fallback for a private part of Spark that is missing; its value is the metric's name."""

    UNFORKED_PYTHON = "spark_unforked_python_total"
    """A Python process of Spark's was started whole, where one forked from ours was to be."""
    MISSING_MODULE = "spark_missing_modules_total"
    """A module that Spark's Python processes import ahead is not there."""
    UNKNOWN_MONITORS = "spark_unknown_monitors_total"
    """Threads that Spark leaves behind streams were not found, or not as they are known."""
    FORKED_FILES = "spark_forked_files_total"
    """A Spark that starts a process for each file that it creates on this machine."""
    PLANNED_FRAMES = "spark_planned_frames_total"
    """A query whose results Spark plans another query for, in each micro-batch."""
    COSTLY_BATCHES = "spark_costly_batches_total"
    """A part of Spark that costs each micro-batch CPU for nothing, and could not be taken out."""


_TEXTS: Final[Mapping[Fallback, str]] = {
    Fallback.UNFORKED_PYTHON: "a Python process of Spark's is not forked, and starts more slowly",
    Fallback.MISSING_MODULE: "a module that Spark's Python processes import ahead is missing, so "
    "that they start more slowly",
    Fallback.UNKNOWN_MONITORS: "the threads that Spark leaves behind a stream were not found, so "
    "its memory grows with each start of a stream",
    Fallback.PLANNED_FRAMES: "Spark plans another query for the results of each micro-batch, which "
    "costs more",
    Fallback.COSTLY_BATCHES: "a part of Spark that costs each micro-batch CPU for nothing could "
    "not be taken out",
    Fallback.FORKED_FILES: "Spark starts a process for each file of a checkpoint, so that a "
    "micro-batch costs more",
}
_ADVICE: Final = "see that PySpark is a version that this streamer is made for"


class Fallbacks:
    """Counts fallbacks, and logs the first of each kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[Fallback] = Counter()
        self._first_reasons: dict[Fallback, str] = {}
        self._logged: set[Fallback] = set()
        self._notes: dict[Path, int] = {}

    def add(self, kind: Fallback, reason: str) -> None:
        """Count one.

        Args:
            kind: what it is.
            reason: what was not as expected.
        """
        with self._lock:
            self._counts[kind] += 1
            self._first_reasons.setdefault(kind, reason)

    def watch_notes(self, path: Path) -> None:
        """Count the lines that other processes write to a file, each about an unforked Python."""
        with self._lock:
            self._notes.setdefault(path, 0)

    def forget_notes(self, path: Path) -> None:
        """Read such a file no more; what it had is counted."""
        self._read_notes()
        with self._lock:
            self._notes.pop(path, None)

    def counts(self) -> dict[str, float]:
        """Return the number of each kind, by the names of their metrics."""
        self._read_notes()
        with self._lock:
            return {kind.value: self._counts[kind] for kind in Fallback}

    def log_new(self, log: LogLine) -> None:
        """Warn of each kind that has come since, once while the program runs."""
        self._read_notes()
        with self._lock:
            new = {k: text for k, text in self._first_reasons.items() if k not in self._logged}
            self._logged.update(new)
        for kind, reason in new.items():
            log("WARN", f"{_TEXTS[kind]} ({reason}); {_ADVICE}", {"metric": kind.value})

    def _read_notes(self) -> None:
        for path, seen in list(self._notes.items()):
            try:
                size = path.stat().st_size
                lines = path.read_text(errors="replace").splitlines() if size else []
            except OSError:
                continue
            with self._lock:
                self._notes[path] = max(len(lines), seen)
            for line in lines[seen:]:
                self.add(Fallback.UNFORKED_PYTHON, line)


FALLBACKS: Final = Fallbacks()
"""Those of this process, in which all streams share one Spark."""


def note_missing_modules(names: Iterable[str], fallbacks: Fallbacks = FALLBACKS) -> None:
    """Count each module that cannot be found; none is imported but the packages around it."""
    for name in names:
        try:
            is_missing = importlib.util.find_spec(name) is None
        except ImportError:
            is_missing = True
        if is_missing:
            fallbacks.add(Fallback.MISSING_MODULE, name)


def java_spark(context: SparkContext) -> Any:
    """Return Java's own context, as py4j has it."""
    return context._jsc.sc()


def java_packages(context: SparkContext) -> Any:
    """Return the packages and classes of Spark's JVM, as py4j has them."""
    return context._jvm


def java_gateway(context: SparkContext) -> Any:
    """Return py4j's gateway to Spark's JVM."""
    return context._gateway


def is_spark_alive(context: SparkContext) -> bool:
    """Return whether there is still a JVM, with a Spark that was not stopped."""
    from py4j.protocol import Py4JError

    try:
        return not java_spark(context).isStopped()
    except (Py4JError, OSError, AttributeError):
        return False


def has_context() -> bool:
    """Return whether this process has a Spark context."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def adopt_gateway(gateway: Any) -> None:
    """Have PySpark use the connection to a JVM, unless it has one.

    Once a process has had a session, PySpark converts each error of Java, for which it needs this.
    """
    from pyspark import SparkContext

    if SparkContext._gateway is None:
        SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm


def close_gateway() -> None:
    """End the JVM of this process, which has no context any more, so that another can start.

    PySpark keeps its connection to the first JVM, and gives it to all contexts that come later.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.terminate()
        try:
            process.wait(_JVM_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
