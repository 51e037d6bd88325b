"""`streamer submit` to a standalone cluster: a job beside the checkpoint, and its driver."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from streamer.cli.submit.driver_bundle import DriverBundle
from streamer.cli.submit.driver_lookup import find_driver
from streamer.cli.submit.driver_status import follow_driver, print_notice, show_or_stop
from streamer.cli.submit.job import Job, delete_ended_jobs, share_archive, write_job
from streamer.cli.submit.sealed_variables import KEY_VARIABLE
from streamer.core.errors import StreamerError
from streamer.plan.checkpoint_dir import is_remote
from streamer.sdk.spec import ParsedFields

if TYPE_CHECKING:
    from streamer.spark.cluster.standalone_master import DriverStatus, StandaloneMaster

_DEFAULT_PYTHON: Final = "python3"
_START_TIMEOUT_S: Final = 10.0
"""Seconds in which a driver that was submitted is expected on a worker."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A driver to submit, and its settings.

    Attributes:
        bundle: what the driver runs.
        checkpoint: its option for that, and where it is.
        spark: the `spark` section.
        supervise: whether the driver is started again when it fails.
        wait: whether to wait for its end.
    """

    bundle: DriverBundle
    checkpoint: tuple[str, str]
    spark: ParsedFields
    supervise: bool
    wait: bool


def get_standalone_master(spark: ParsedFields) -> str:
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


def require_shared_directory(named: str | None) -> Path:
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


def submit_to_standalone(submission: Submission) -> int:
    """Submit a driver, and follow it; return the exit code.

    Raises:
        StreamerError: it cannot be submitted, or it failed while it was followed.
    """
    # Imported here: Spark's Python takes a second, and the config may have been wrong.
    from streamer.spark.cluster.standalone_master import StandaloneMaster

    with StandaloneMaster(
        get_standalone_master(submission.spark), submission.spark["conf"]
    ) as master:
        return _submit_to_master(submission, master)


def show_or_stop_standalone(spark: ParsedFields, id: str, stop: bool) -> int:
    """Print how a driver is, or stop it; return the exit code.

    Raises:
        StreamerError: the master does not answer, or does not know it.
    """
    from streamer.spark.cluster.standalone_master import StandaloneMaster

    with StandaloneMaster(get_standalone_master(spark), spark["conf"]) as master:
        id = find_driver(id, master.drivers(), print_notice)
        return show_or_stop(master, id, stop, f"the master {master.url} does not know {id}")


def _submit_to_master(submission: Submission, master: StandaloneMaster) -> int:
    from streamer.spark.cluster.standalone_master import DriverRequest

    def has_ended(id: str) -> bool:
        status = master.status(id)
        return status is not None and status.has_ended

    delete_ended_jobs(Path(submission.checkpoint[1]), has_ended)
    job, conf = _make_job(submission), submission.spark["conf"]
    driver = DriverRequest(
        jar=job.jar,
        file=str(job.program),
        python=conf.get("spark.pyspark.driver.python")
        or conf.get("spark.pyspark.python", _DEFAULT_PYTHON),
        memory=conf.get("spark.driver.memory", "1g"),
        cores=int(conf.get("spark.driver.cores", "1")),
        supervise=submission.supervise,
        variables={KEY_VARIABLE: job.key},
    )
    id = master.submit(driver)
    job.record_driver_id(id)
    click.echo(id)
    url = f"--master {master.url}"
    print_notice(f"submitted to {master.url}; its files are in {job.directory}")
    print_notice(
        f"look: streamer submit {url} --status {id}; stop: streamer submit {url} --kill {id}"
    )
    status = follow_driver(
        lambda: master.status(id),
        f"the master {master.url} does not know {id} any more",
        "no worker has the cores and the memory that it requests, so far",
        None if submission.wait else _START_TIMEOUT_S,
    )
    return _check_outcome(status, job) if status.has_ended else 0


def _make_job(submission: Submission) -> Job:
    from streamer.spark.cluster.worker_setup import cache_directory
    from streamer.spark.worker_archive import find_or_pack
    from streamer.spark.worker_archive.archive import LOCAL_SCHEME

    option, named = submission.checkpoint
    directory = Path(named)
    archive = submission.spark["environment"]
    if archive == "packed":
        cache, requirements = cache_directory(os.environ), submission.bundle.requirements
        archive = share_archive(find_or_pack(cache, print_notice, requirements), directory)
    elif archive == "installed":
        archive = None
    elif "://" not in archive:
        archive = str(Path(archive.removeprefix(LOCAL_SCHEME)).expanduser().absolute())
    arguments = (*submission.bundle.arguments, option, named)
    return write_job(replace(submission.bundle, arguments=arguments), directory, archive)


def _check_outcome(status: DriverStatus, job: Job) -> int:
    if status.state == "FINISHED":
        return 0
    outcome = job.read_outcome()
    if status.state == "KILLED":
        raise StreamerError("the driver was killed")
    if outcome is None:
        raise StreamerError(
            f"the driver did not start on the worker {status.worker or '(none)'}: "
            f"{status.error or 'it left no word'}; can its user read {job.directory}? Its log is "
            "below the worker's directory `work`, in stderr"
        )
    last = next((line for line in reversed(outcome["last"]) if line.strip()), "it printed nothing")
    raise StreamerError(f"the driver failed on {outcome['host']}: {last}")
