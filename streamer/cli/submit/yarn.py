"""`streamer submit` to YARN: Spark's own client brings the driver into an application master.

What the driver needs travels through YARN's staging directory, which only its owner reads, and lies
beside the driver when that starts.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from streamer.cli.submit import driver
from streamer.cli.submit.driver_bundle import DriverBundle
from streamer.cli.submit.driver_status import follow_driver, print_notice, show_or_stop
from streamer.cli.submit.job import Job, create_job_directory, delete_ended_jobs
from streamer.cli.submit.spark_submit import spark_submit
from streamer.cli.submit.standalone import Submission
from streamer.core.errors import StreamerError
from streamer.plan.checkpoint_dir import is_remote
from streamer.sdk.spec import ParsedFields

if TYPE_CHECKING:
    from streamer.spark.cluster.standalone_master import DriverStatus

_APPLICATION_ID: Final = re.compile(r"application_\d+_\d+")
_PROGRAM_FILE: Final = "start.py"
_FILES_ARCHIVE: Final = f"{driver.FILES_DIRECTORY}.tar.gz"
_JAVA_OPTIONS_SETTING: Final = "spark.driver.extraJavaOptions"
_START_TIMEOUT_S: Final = 30.0
"""Seconds in which a driver that was submitted is expected on a node."""
# What names the application is a line of Spark's log. Nodes get these settings too.
_LOG4J_PROPERTIES: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
logger.client.name = org.apache.spark.deploy.yarn.Client
logger.client.level = info
"""


def submit_to_yarn(submission: Submission, name: str) -> int:
    """Submit a driver, and follow it; return the exit code.

    Args:
        submission: what is to be submitted.
        name: what the application is called.

    Raises:
        StreamerError: it cannot be submitted, or it failed while it was followed.
    """
    # Imported here: Spark's Python takes a second, and the config may have been wrong.
    from streamer.spark.cluster.yarn import YarnApplications

    with YarnApplications(submission.spark["conf"]) as yarn:

        def has_ended(id: str) -> bool:
            status = yarn.status(id) if _APPLICATION_ID.fullmatch(id) else None
            return status is not None and status.has_ended

        job = None
        if not is_remote(submission.checkpoint[1]):
            delete_ended_jobs(Path(submission.checkpoint[1]), has_ended)
            job = Job(create_job_directory(Path(submission.checkpoint[1])))
        id = _submit_application(submission, name, job)
        if job is not None:
            job.record_driver_id(id)
        click.echo(id)
        option = "--master yarn"
        print_notice(
            f"look: streamer submit {option} --status {id}; log: yarn logs -applicationId {id}"
        )
        print_notice(f"stop: streamer submit {option} --kill {id}")
        status = follow_driver(
            lambda: yarn.status(id),
            f"YARN does not know {id} any more",
            "YARN has not started it so far: see on the ResourceManager's page what it waits for",
            None if submission.wait else _START_TIMEOUT_S,
        )
        return _check_outcome(id, status, job) if status.has_ended else 0


def show_or_stop_yarn(spark: ParsedFields, id: str, stop: bool) -> int:
    """Print how a driver is, or stop it; return the exit code.

    Raises:
        StreamerError: YARN does not answer, or does not know it.
    """
    from streamer.spark.cluster.yarn import YarnApplications

    with YarnApplications(spark["conf"]) as yarn:
        return show_or_stop(yarn, id, stop, f"YARN does not know {id}")


def _submit_application(submission: Submission, name: str, job: Job | None) -> str:
    """Have Spark's client submit a driver; return the application's id."""
    from streamer.spark.cluster.yarn import MASTER, SETTINGS
    from streamer.spark.jars.spark_settings import stream_spark_settings
    from streamer.spark.worker_archive.archive import ARCHIVE_PYTHON, ENVIRONMENT_DIRECTORY

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        print_notice(text)

    archive = _find_archive(submission.spark, submission.bundle.requirements)
    own = dict(stream_spark_settings(submission.spark, os.environ, log, submission.checkpoint[1]))
    jars = own.get("spark.jars") != submission.spark["conf"].get("spark.jars")
    python = ARCHIVE_PYTHON if archive else own.get("spark.pyspark.python", "python3")
    driver_python = ARCHIVE_PYTHON if archive else own.get("spark.pyspark.driver.python", python)
    with tempfile.TemporaryDirectory(prefix="streamer-submit-") as directory:
        sent, settings = Path(directory, "sent"), Path(directory, "settings")
        sent.mkdir()
        settings.mkdir()
        (settings / "log4j2.properties").write_text(_LOG4J_PROPERTIES)
        shutil.copyfile(driver.__file__, sent / _PROGRAM_FILE)
        (sent / driver.JOB_FILE).write_text(
            json.dumps(_describe_job(submission, job, archive, jars))
        )
        _pack_files(sent / _FILES_ARCHIVE, submission.bundle)
        archives = [f"{sent / _FILES_ARCHIVE}#{driver.FILES_DIRECTORY}"]
        archives += [f"{archive}#{ENVIRONMENT_DIRECTORY}"] if archive else []
        lists = {
            "spark.yarn.dist.archives": archives,
            "spark.yarn.dist.files": [str(sent / driver.JOB_FILE)],
        }
        conf = {
            **SETTINGS,
            # YARN's own limit holds when nothing is said here.
            **({} if submission.supervise else {"spark.yarn.maxAppAttempts": "1"}),
            **own,
            "spark.yarn.submit.waitAppCompletion": "false",
            "spark.pyspark.python": python,
            "spark.pyspark.driver.python": driver_python,
            **{key: ",".join(filter(None, [own.get(key), *items])) for key, items in lists.items()},
        }
        conf = {key: text for key, text in conf.items() if text}
        output = spark_submit(
            MASTER, f"streamer {name}", conf, [str(sent / _PROGRAM_FILE)], settings
        )
    match = _APPLICATION_ID.search(output)
    if match is None:
        raise StreamerError(
            f"Spark's client did not say what YARN calls the driver: {output.strip()[-500:]}"
        )
    return match[0]


def _find_archive(spark: ParsedFields, requirements: Sequence[str]) -> str | None:
    from streamer.spark.cluster.worker_setup import cache_directory
    from streamer.spark.worker_archive import find_or_pack

    archive = str(spark["environment"])
    if archive == "installed":
        return None
    if archive == "packed":
        return str(find_or_pack(cache_directory(os.environ), print_notice, requirements))
    return archive if "://" in archive else str(Path(archive).expanduser().absolute())


def _describe_job(
    submission: Submission, job: Job | None, archive: str | None, jars: bool
) -> dict[str, Any]:
    """Return the job, see `driver.main`."""
    from streamer.spark.worker_archive.archive import ARCHIVE_PYTHON

    # YARN has unpacked the archive where the driver and executors start.
    python = ("-s", f"spark.conf.spark~1pyspark~1python={ARCHIVE_PYTHON}") if archive else ()
    return {
        "archive": archive,
        "arguments": [
            *submission.bundle.arguments,
            *submission.checkpoint,
            *("-s", "spark.environment=installed", *python),
        ],
        "variables": submission.bundle.collect_variables(),
        "joins": True,
        "beside": {"XDG_STATE_HOME": "state", **({"STREAMER_JARS": "."} if jars else {})},
        "outcome": str(job.directory) if job is not None else None,
    }


def _pack_files(path: Path, bundle: DriverBundle) -> None:
    texts = {name: text.encode() for name, text in bundle.files.items()}
    with tarfile.open(path, "w:gz") as out:
        for name, data in {**bundle.imported, **texts}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            out.addfile(entry, io.BytesIO(data))


def _check_outcome(id: str, status: DriverStatus, job: Job | None) -> int:
    if not status.has_failed:
        return 0
    if status.state == "KILLED":
        raise StreamerError("the driver was killed")
    outcome = job.read_outcome() if job is not None else None
    if outcome is None:
        raise StreamerError(
            f"the driver failed: {status.error or 'YARN does not say why'}; its log: yarn logs "
            f"-applicationId {id}"
        )
    last = next((line for line in reversed(outcome["last"]) if line.strip()), "it printed nothing")
    raise StreamerError(f"the driver failed on {outcome['host']}: {last}")
