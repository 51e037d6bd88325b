"""`streamer submit` to a standalone cluster: a job beside the checkpoint, and its driver."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from streamer.cli.contents import Contents
from streamer.cli.driver_lookup import find_driver
from streamer.cli.follow import follow, look_after, tell
from streamer.cli.job import Job, forget_ended, shared_archive, write_job
from streamer.errors import StreamerError
from streamer.plan.place import is_remote
from streamer.spec import Parsed, ParsedComponent

if TYPE_CHECKING:
    from streamer.spark.submission import Master, Status

_PYTHON: Final = "python3"
_PATIENCE: Final = 10.0
"""Seconds in which a driver that was submitted is expected on a worker."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What is to be submitted, and how.

    Attributes:
        contents: what the driver runs.
        checkpoint: its option for that, and where it is.
        spark: the `spark` section.
        inputs: of the streams that are known.
        supervise: whether the driver is started again when it fails.
        wait: whether to wait for its end.
    """

    contents: Contents
    checkpoint: tuple[str, str]
    spark: Parsed
    inputs: tuple[ParsedComponent, ...]
    supervise: bool
    wait: bool


def master_of(spark: Parsed) -> str:
    """Return the URL of a standalone master.

    Raises:
        StreamerError: it is none.
    """
    master = str(spark["master"])
    if not master.startswith("spark://"):
        raise StreamerError(
            f"spark.master is {master}, expected spark://HOST:7077, yarn, or for a config "
            "k8s://https://HOST:PORT: name it by --master, or run it here without submit"
        )
    return master


def shared_directory(named: str | None) -> Path:
    """Return a checkpoint's directory, which a driver on another machine has to see too.

    Raises:
        StreamerError: there is none, or it is no directory.
    """
    if not named:
        raise StreamerError(
            "submit needs a checkpoint, since the driver may come back on another machine: name a "
            "directory that this machine and all workers have at the same path, by --checkpoint "
            "or spark.checkpoint"
        )
    if is_remote(named):
        raise StreamerError(
            f"the checkpoint is {named}, and submit takes a directory that this machine and all "
            "workers have at the same path"
        )
    return Path(named.removeprefix("file://")).absolute()


def submit(wanted: Submission) -> int:
    """Submit a driver, and follow it; return the exit code.

    Raises:
        StreamerError: it cannot be submitted, or it failed while it was followed.
    """
    # Imported here: Spark's Python takes a second, and the config may have been wrong.
    from streamer.spark.submission import Master

    with Master(master_of(wanted.spark), wanted.spark["conf"]) as master:
        return _submit(wanted, master)


def look_after_standalone(spark: Parsed, id: str, stop: bool) -> int:
    """Print how a driver is, or stop it; return the exit code.

    Raises:
        StreamerError: the master does not answer, or does not know it.
    """
    from streamer.spark.submission import Master

    with Master(master_of(spark), spark["conf"]) as master:
        id = find_driver(id, master.drivers(), tell)
        return look_after(master, id, stop, f"the master {master.url} does not know {id}")


def _submit(wanted: Submission, master: Master) -> int:
    from streamer.spark.submission import Driver

    def ended(id: str) -> bool:
        status = master.status(id)
        return status is not None and status.ended

    forget_ended(Path(wanted.checkpoint[1]), ended)
    job, conf = _job(wanted), wanted.spark["conf"]
    driver = Driver(
        jar=job.jar,
        file=str(job.program),
        python=conf.get("spark.pyspark.driver.python") or conf.get("spark.pyspark.python", _PYTHON),
        memory=conf.get("spark.driver.memory", "1g"),
        cores=int(conf.get("spark.driver.cores", "1")),
        supervise=wanted.supervise,
    )
    id = master.submit(driver)
    job.submitted(id)
    click.echo(id)
    url = f"--master {master.url}"
    tell(f"submitted to {master.url}; its files are in {job.directory}")
    tell(f"look: streamer submit {url} --status {id}; stop: streamer submit {url} --kill {id}")
    status = follow(
        lambda: master.status(id),
        f"the master {master.url} does not know {id} any more",
        "no worker has the cores and the memory that it asks for, so far",
        None if wanted.wait else _PATIENCE,
    )
    return _ended(status, job) if status.ended else 0


def _job(wanted: Submission) -> Job:
    from streamer.packing import packed
    from streamer.packing.archive import LOCAL
    from streamer.spark.cluster import cache_directory
    from streamer.spark.jars import shipped_jars

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        tell(text)

    option, named = wanted.checkpoint
    directory = Path(named)
    archive = wanted.spark["environment"]
    if archive == "packed":
        archive = shared_archive(packed(cache_directory(os.environ), tell), directory)
    elif archive == "installed":
        archive = None
    elif "://" not in archive:
        archive = str(Path(archive.removeprefix(LOCAL)).expanduser().absolute())
    jars = shipped_jars(wanted.inputs, wanted.spark, os.environ, log)
    arguments = (*wanted.contents.arguments, option, named)
    return write_job(replace(wanted.contents, arguments=arguments), directory, archive, jars)


def _ended(status: Status, job: Job) -> int:
    if status.state == "FINISHED":
        return 0
    outcome = job.outcome()
    if status.state == "KILLED":
        raise StreamerError("the driver was killed")
    if outcome is None:
        raise StreamerError(
            f"the driver did not start on the worker {status.worker or '(none)'}: "
            f"{status.error or 'it left no word'}; can its user read {job.directory}? Its log is "
            "below the worker's directory `work`, in stderr"
        )
    last = next((line for line in reversed(outcome["last"]) if line.strip()), "it said nothing")
    raise StreamerError(f"the driver failed on {outcome['host']}: {last}")
