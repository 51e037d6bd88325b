"""Whether a cluster's workers can run this program: seen before a micro-batch has to."""

from __future__ import annotations

import re
import socket
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from streamer.core.errors import StreamerError
from streamer.engine.driver.failure_diagnosis import root_cause_line
from streamer.engine.planner.checkpoint_path import CheckpointPath, remove_tree
from streamer.spark.compat import java_spark


@dataclass(frozen=True, slots=True)
class ExecutorVersions:
    """The installation of an executor.

    Attributes:
        host: where it runs.
        versions: of Python, and of packages, by name; empty for one that is not there.
    """

    host: str
    versions: Mapping[str, str]


_CHECKED_PACKAGES: Final = ("streamer", "pyspark", "pyarrow", "orjson")


def installed_versions() -> dict[str, str]:
    """Return the versions of what both ends of Spark have to agree about."""
    result = {"python": ".".join(map(str, sys.version_info[:2]))}
    for name in _CHECKED_PACKAGES:
        try:
            module = __import__(name)
            result[name] = getattr(module, "__version__", None) or metadata.version(name)
        except (ImportError, metadata.PackageNotFoundError):
            result[name] = ""
    return result


def _report_versions(_: Iterator[int]) -> Iterator[ExecutorVersions]:
    # Long enough for all executors to get a task of their own.
    time.sleep(0.2)
    yield ExecutorVersions(socket.gethostname(), installed_versions())


def check_workers(context: SparkContext, timeout: float = 60.0) -> int:
    """Check that every executor can run this program, before a micro-batch has to.

    Args:
        context: a cluster's.
        timeout: seconds to wait for the first executor.

    Returns:
        How many executors there are.

    Raises:
        StreamerError: there is none, or one lacks something; the text is one sentence.
    """
    count = _wait_for_executors(context, timeout)
    tasks = max(2 * context.defaultParallelism, 2 * count)
    try:
        reports = context.parallelize(range(tasks), tasks).mapPartitions(_report_versions).collect()
    except Exception as e:
        raise StreamerError(explain_worker_error(str(e))) from e
    driver_versions = installed_versions()
    for one in reports:
        _check_versions(one, driver_versions)
    return count


def _check_versions(one: ExecutorVersions, driver_versions: Mapping[str, str]) -> None:
    for name, version in driver_versions.items():
        has = one.versions.get(name)
        if not has:
            difference = f"lacks {name}, of which the driver has {version}"
        elif has != version:
            difference = f"has {name} {has}, the driver {version}"
        else:
            continue
        raise StreamerError(f"the worker {one.host} {difference}: {_REMEDY}")


_REMEDY: Final = "let spark.environment be `packed`, or install the same version there as here"


_MANAGER_NAMES: Final = {"yarn": "ResourceManager"}


def _wait_for_executors(context: SparkContext, timeout: float) -> int:
    until = time.monotonic() + timeout
    tracker = java_spark(context).statusTracker()
    while True:
        # The driver is one of them.
        count = len(tracker.getExecutorInfos()) - 1
        if count > 0:
            return count
        if time.monotonic() >= until:
            raise StreamerError(
                f"the cluster {context.master} gave no worker within {timeout:.0f} s: see on the "
                f"{_MANAGER_NAMES.get(context.master, 'master')}'s page whether workers are there, "
                "and have the cores and the memory (spark.executor.memory, spark.executor.cores) "
                "that are asked for"
            )
        time.sleep(0.2)


def check_checkpoint(session: SparkSession, checkpoint: CheckpointPath) -> None:
    """Check that every executor writes where the driver reads, before a micro-batch has to.

    Args:
        session: a cluster's.
        checkpoint: the checkpoint.

    Raises:
        StreamerError: one does not; the text is one sentence.
    """
    context = session.sparkContext
    probe = checkpoint / f"probe-{uuid.uuid4().hex[:12]}"
    url = probe.as_uri() if isinstance(probe, Path) else str(probe)
    tasks = 2 * context.defaultParallelism
    try:
        # By Hadoop, and so with the jars, the names and the rights with which Spark keeps state.
        hosts = context.parallelize(range(tasks), tasks).mapPartitionsWithIndex(_write_mark)
        hosts.saveAsTextFile(url)
        lines = _read_marks(context, probe)
        missing = set(range(tasks)) - {int(line.partition(" ")[0]) for line in lines}
    except Exception as e:
        reason = root_cause_line(str(e))
        raise StreamerError(f"workers cannot write to the checkpoint {checkpoint}: {reason}") from e
    finally:
        with suppress(OSError):
            remove_tree(probe)
    if missing:
        raise StreamerError(_NOT_SHARED.format(place=checkpoint))


def _read_marks(context: SparkContext, probe: CheckpointPath) -> list[str]:
    """Return the lines that workers have written, as the driver sees them."""
    if isinstance(probe, Path):
        # Without a job: workers would read for the driver what they have written themselves.
        return [line for part in probe.glob("part-*") for line in part.read_text().splitlines()]
    return list(context.textFile(str(probe)).collect())


_NOT_SHARED: Final = (
    "the workers' {place} is not the driver's: the checkpoint has to be a directory that all of "
    "them mount at this path, or on a file system that all reach (s3a://…, hdfs://…)"
)


def _write_mark(number: int, _: Iterator[int]) -> Iterator[str]:
    time.sleep(0.1)
    yield f"{number} {socket.gethostname()}"


_VERSION_MISMATCH: Final = re.compile(
    r"Python in worker has different version: (\S+) than.*?driver: (\S+?),"
)
_MISSING_MODULE: Final = re.compile(r"No module named '?([\w.]+)'?")
_NO_PROGRAM: Final = re.compile(r'Cannot run program "([^"]+)"')
_LAUNCHER_ERROR: Final = re.compile(r"streamer: (no (?:Python|environment) .*)")


def explain_worker_error(text: str) -> str:
    """Return why workers cannot run this program, from what Spark says of it."""
    if match := _VERSION_MISMATCH.search(text):
        return f"workers have Python {match[1]}, the driver {match[2]}: {_REMEDY}"
    if match := _LAUNCHER_ERROR.search(text):
        return match[1].strip()
    if match := _MISSING_MODULE.search(text):
        return f"a worker lacks the Python package {match[1].split('.')[0]}: {_REMEDY}"
    if match := _NO_PROGRAM.search(text):
        return (
            f"a worker has no program {match[1]}: install Python there, or name it by "
            "spark.conf: {spark.pyspark.python: …}"
        )
    first = next((line for line in text.splitlines() if line.strip()), "it did not say why")
    return f"a worker cannot run streamer: {first.strip()}"
