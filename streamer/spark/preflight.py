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

from streamer.engine.location import Anywhere, remove_tree
from streamer.engine.troubles import said
from streamer.errors import StreamerError


@dataclass(frozen=True, slots=True)
class Found:
    """What an executor has.

    Attributes:
        host: where it runs.
        versions: of Python, and of packages, by name; empty for one that is not there.
    """

    host: str
    versions: Mapping[str, str]


_CHECKED: Final = ("streamer", "pyspark", "pyarrow", "orjson")


def versions() -> dict[str, str]:
    """Return the versions of what both ends of Spark have to agree about."""
    found = {"python": ".".join(map(str, sys.version_info[:2]))}
    for name in _CHECKED:
        try:
            module = __import__(name)
            found[name] = getattr(module, "__version__", None) or metadata.version(name)
        except (ImportError, metadata.PackageNotFoundError):
            found[name] = ""
    return found


def _look(_: Iterator[int]) -> Iterator[Found]:
    # Long enough for all executors to get a task of their own.
    time.sleep(0.2)
    yield Found(socket.gethostname(), versions())


def check_workers(context: SparkContext, patience: float = 60.0) -> int:
    """See that every executor can run this program, before a micro-batch has to.

    Args:
        context: a cluster's.
        patience: seconds to wait for the first executor.

    Returns:
        How many executors there are.

    Raises:
        StreamerError: there is none, or one lacks something; the text is one sentence.
    """
    count = _wait_for_executors(context, patience)
    tasks = max(2 * context.defaultParallelism, 2 * count)
    try:
        found = context.parallelize(range(tasks), tasks).mapPartitions(_look).collect()
    except Exception as e:
        raise StreamerError(translated(str(e))) from e
    ours = versions()
    for one in found:
        _compare(one, ours)
    return count


def _compare(one: Found, ours: Mapping[str, str]) -> None:
    for name, version in ours.items():
        has = one.versions.get(name)
        if not has:
            what = f"lacks {name}, of which the driver has {version}"
        elif has != version:
            what = f"has {name} {has}, the driver {version}"
        else:
            continue
        raise StreamerError(f"the worker {one.host} {what}: {_REMEDY}")


_REMEDY: Final = "let spark.environment be `packed`, or install the same version there as here"


_PAGES: Final = {"yarn": "ResourceManager"}


def _wait_for_executors(context: SparkContext, patience: float) -> int:
    until = time.monotonic() + patience
    tracker = context._jsc.sc().statusTracker()
    while True:
        # The driver is one of them.
        count = len(tracker.getExecutorInfos()) - 1
        if count > 0:
            return count
        if time.monotonic() >= until:
            raise StreamerError(
                f"the cluster {context.master} gave no worker within {patience:.0f} s: see on the "
                f"{_PAGES.get(context.master, 'master')}'s page whether workers are there, and "
                "have the cores and the memory (spark.executor.memory, spark.executor.cores) that "
                "are asked for"
            )
        time.sleep(0.2)


def check_checkpoint(session: SparkSession, place: Anywhere) -> None:
    """See that every executor writes where the driver reads, before a micro-batch has to.

    Args:
        session: a cluster's.
        place: the checkpoint.

    Raises:
        StreamerError: one does not; the text is one sentence.
    """
    context = session.sparkContext
    probe = place / f"probe-{uuid.uuid4().hex[:12]}"
    url = probe.as_uri() if isinstance(probe, Path) else str(probe)
    tasks = 2 * context.defaultParallelism
    try:
        # By Hadoop, and so with the jars, the names and the rights with which Spark keeps state.
        hosts = context.parallelize(range(tasks), tasks).mapPartitionsWithIndex(_mark)
        hosts.saveAsTextFile(url)
        found = _marks(context, probe)
        lost = set(range(tasks)) - {int(line.partition(" ")[0]) for line in found}
    except Exception as e:
        why = said(str(e))
        raise StreamerError(f"workers cannot write to the checkpoint {place}: {why}") from e
    finally:
        with suppress(OSError):
            remove_tree(probe)
    if lost:
        raise StreamerError(_NOT_SHARED.format(place=place))


def _marks(context: SparkContext, probe: Anywhere) -> list[str]:
    """Return the lines that workers have written, as the driver sees them."""
    if isinstance(probe, Path):
        # Without a job: workers would read for the driver what they have written themselves.
        return [line for part in probe.glob("part-*") for line in part.read_text().splitlines()]
    return list(context.textFile(str(probe)).collect())


_NOT_SHARED: Final = (
    "the workers' {place} is not the driver's: the checkpoint has to be a directory that all of "
    "them mount at this path, or on a file system that all reach (s3a://…, hdfs://…)"
)


def _mark(number: int, _: Iterator[int]) -> Iterator[str]:
    time.sleep(0.1)
    yield f"{number} {socket.gethostname()}"


_VERSIONS: Final = re.compile(
    r"Python in worker has different version: (\S+) than.*?driver: (\S+?),"
)
_MISSING: Final = re.compile(r"No module named '?([\w.]+)'?")
_NO_PROGRAM: Final = re.compile(r'Cannot run program "([^"]+)"')
_OURS: Final = re.compile(r"streamer: (no (?:Python|environment) .*)")


def translated(text: str) -> str:
    """Return why workers cannot run this program, from what Spark says of it."""
    if found := _VERSIONS.search(text):
        return f"workers have Python {found[1]}, the driver {found[2]}: {_REMEDY}"
    if found := _OURS.search(text):
        return found[1].strip()
    if found := _MISSING.search(text):
        return f"a worker lacks the Python package {found[1].split('.')[0]}: {_REMEDY}"
    if found := _NO_PROGRAM.search(text):
        return (
            f"a worker has no program {found[1]}: install Python there, or name it by "
            "spark.conf: {spark.pyspark.python: …}"
        )
    first = next((line for line in text.splitlines() if line.strip()), "it did not say why")
    return f"a worker cannot run streamer: {first.strip()}"
