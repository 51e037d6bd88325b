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
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from streamer.cli import driver
from streamer.cli.contents import Contents
from streamer.cli.follow import follow, look_after, tell
from streamer.cli.job import Job, forget_ended, new_directory
from streamer.cli.spark_submit import spark_submit
from streamer.cli.submit_standalone import Submission
from streamer.errors import StreamerError
from streamer.plan.place import is_remote
from streamer.spec import Parsed

if TYPE_CHECKING:
    from streamer.spark.submission import Status

_ID: Final = re.compile(r"application_\d+_\d+")
_PROGRAM: Final = "start.py"
_ARCHIVE: Final = f"{driver.FILES}.tar.gz"
_JAVA: Final = "spark.driver.extraJavaOptions"
_PATIENCE: Final = 30.0
"""Seconds in which a driver that was submitted is expected on a node."""
# What names the application is a line of Spark's log. Nodes get these settings too.
_LOG: Final = """\
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


def submit_to_yarn(wanted: Submission, name: str) -> int:
    """Submit a driver, and follow it; return the exit code.

    Args:
        wanted: what is to be submitted.
        name: what the application is called.

    Raises:
        StreamerError: it cannot be submitted, or it failed while it was followed.
    """
    # Imported here: Spark's Python takes a second, and the config may have been wrong.
    from streamer.spark.yarn import Applications

    with Applications(wanted.spark["conf"]) as yarn:

        def ended(id: str) -> bool:
            status = yarn.status(id) if _ID.fullmatch(id) else None
            return status is not None and status.ended

        job = None
        if not is_remote(wanted.checkpoint[1]):
            forget_ended(Path(wanted.checkpoint[1]), ended)
            job = Job(new_directory(Path(wanted.checkpoint[1])))
        id = _submitted(wanted, name, job)
        if job is not None:
            job.submitted(id)
        click.echo(id)
        option = "--master yarn"
        tell(f"look: streamer submit {option} --status {id}; log: yarn logs -applicationId {id}")
        tell(f"stop: streamer submit {option} --kill {id}")
        status = follow(
            lambda: yarn.status(id),
            f"YARN does not know {id} any more",
            "YARN has not started it so far: see on the ResourceManager's page what it waits for",
            None if wanted.wait else _PATIENCE,
        )
        return _ended(id, status, job) if status.ended else 0


def look_after_yarn(spark: Parsed, id: str, stop: bool) -> int:
    """Print how a driver is, or stop it; return the exit code.

    Raises:
        StreamerError: YARN does not answer, or does not know it.
    """
    from streamer.spark.yarn import Applications

    with Applications(spark["conf"]) as yarn:
        return look_after(yarn, id, stop, f"YARN does not know {id}")


def _submitted(wanted: Submission, name: str, job: Job | None) -> str:
    """Have Spark's client submit a driver; return the application's id."""
    from streamer.packing.archive import NAME, PYTHON
    from streamer.spark.compiling import AS_EXECUTOR
    from streamer.spark.jars import reads_kafka, with_own_jars
    from streamer.spark.yarn import MASTER, SETTINGS

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        tell(text)

    archive = _archive(wanted.spark)
    own = dict(with_own_jars(wanted.inputs, wanted.spark, os.environ, log, wanted.checkpoint[1]))
    if any(map(reads_kafka, wanted.inputs)):
        own[_JAVA] = f"{AS_EXECUTOR} {own.get(_JAVA, '')}".strip()
    jars = own.get("spark.jars") != wanted.spark["conf"].get("spark.jars")
    python = PYTHON if archive else own.get("spark.pyspark.python", "python3")
    driver_python = PYTHON if archive else own.get("spark.pyspark.driver.python", python)
    with tempfile.TemporaryDirectory(prefix="streamer-submit-") as directory:
        sent, settings = Path(directory, "sent"), Path(directory, "settings")
        sent.mkdir()
        settings.mkdir()
        (settings / "log4j2.properties").write_text(_LOG)
        shutil.copyfile(driver.__file__, sent / _PROGRAM)
        (sent / driver.JOB).write_text(json.dumps(_about(wanted, job, archive, jars)))
        _pack(sent / _ARCHIVE, wanted.contents)
        archives = [f"{sent / _ARCHIVE}#{driver.FILES}"]
        archives += [f"{archive}#{NAME}"] if archive else []
        lists = {
            "spark.yarn.dist.archives": archives,
            "spark.yarn.dist.files": [str(sent / driver.JOB)],
        }
        conf = {
            **SETTINGS,
            # YARN's own limit holds when nothing is said here.
            **({} if wanted.supervise else {"spark.yarn.maxAppAttempts": "1"}),
            **own,
            "spark.yarn.submit.waitAppCompletion": "false",
            "spark.pyspark.python": python,
            "spark.pyspark.driver.python": driver_python,
            **{key: ",".join(filter(None, [own.get(key), *items])) for key, items in lists.items()},
        }
        conf = {key: text for key, text in conf.items() if text}
        said = spark_submit(MASTER, f"streamer {name}", conf, [str(sent / _PROGRAM)], settings)
    found = _ID.search(said)
    if found is None:
        raise StreamerError(
            f"Spark's client did not say what YARN calls the driver: {said.strip()[-500:]}"
        )
    return found[0]


def _archive(spark: Parsed) -> str | None:
    from streamer.packing import packed
    from streamer.spark.cluster import cache_directory

    archive = str(spark["environment"])
    if archive == "installed":
        return None
    if archive == "packed":
        return str(packed(cache_directory(os.environ), tell))
    return archive if "://" in archive else str(Path(archive).expanduser().absolute())


def _about(wanted: Submission, job: Job | None, archive: str | None, jars: bool) -> dict[str, Any]:
    """Return the job, see `driver.main`."""
    from streamer.packing.archive import PYTHON

    # YARN has unpacked the archive where the driver and executors start.
    python = ("-s", f"spark.conf.spark~1pyspark~1python={PYTHON}") if archive else ()
    return {
        "archive": archive,
        "arguments": [
            *wanted.contents.arguments,
            *wanted.checkpoint,
            *("-s", "spark.environment=installed", *python),
        ],
        "variables": wanted.contents.variables(),
        "joins": True,
        "beside": {"XDG_STATE_HOME": "state", **({"STREAMER_JARS": "."} if jars else {})},
        "outcome": str(job.directory) if job is not None else None,
    }


def _pack(path: Path, contents: Contents) -> None:
    texts = {name: text.encode() for name, text in contents.files.items()}
    with tarfile.open(path, "w:gz") as out:
        for name, data in {**contents.imported, **texts}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            out.addfile(entry, io.BytesIO(data))


def _ended(id: str, status: Status, job: Job | None) -> int:
    if not status.failed:
        return 0
    if status.state == "KILLED":
        raise StreamerError("the driver was killed")
    outcome = job.outcome() if job is not None else None
    if outcome is None:
        raise StreamerError(
            f"the driver failed: {status.error or 'YARN does not say why'}; its log: yarn logs "
            f"-applicationId {id}"
        )
    last = next((line for line in reversed(outcome["last"]) if line.strip()), "it said nothing")
    raise StreamerError(f"the driver failed on {outcome['host']}: {last}")
