"""Files of a driver that runs on a cluster, in a directory that both machines can see."""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamer.cli.submit import driver, sealed_variables
from streamer.cli.submit.driver_bundle import DriverBundle
from streamer.core.errors import StreamerError
from streamer.spark.worker_archive import environment_cache
from streamer.spark.worker_archive.archive import LOCAL_SCHEME

JOBS_DIRECTORY: Final = "submitted"
"""Where jobs lie below a checkpoint."""

_PROGRAM_FILE: Final = "start.py"
_JAR_FILE: Final = "start.jar"
_SUBMISSION_FILE: Final = "submission.json"
_ARCHIVE_PATTERN: Final = "environment-*.tar.gz"


@dataclass(frozen=True, slots=True)
class Job:
    """A directory with all that a driver begins with; only its owner can read it.

    Attributes:
        directory: its path, which is the same on the cluster.
        key: what the driver opens its environment variables with; it is in no file.
    """

    directory: Path
    key: str = ""

    @property
    def program(self) -> Path:
        """The Python file that the cluster starts."""
        return self.directory / _PROGRAM_FILE

    @property
    def jar(self) -> str:
        """The URL of the jar that Spark asks for."""
        return (self.directory / _JAR_FILE).as_uri()

    def record_driver_id(self, id: str) -> None:
        """Note what the master calls the driver."""
        (self.directory / _SUBMISSION_FILE).write_text(json.dumps({"id": id}))

    def read_outcome(self) -> dict[str, Any] | None:
        """Return what the driver has left: `code`, `host` and the `last` lines of its log."""
        return _read_json(self.directory / driver.OUTCOME_FILE)


def write_job(bundle: DriverBundle, checkpoint: Path, archive: str | None) -> Job:
    """Write a job.

    Args:
        bundle: what is to run.
        checkpoint: the directory of the checkpoint, an absolute path.
        archive: the workers' environment, a path or URL that they read; None for what they have.

    Raises:
        StreamerError: it cannot be written.
    """
    path = create_job_directory(checkpoint)
    sealed, key = sealed_variables.seal_variables(bundle.collect_variables())
    job = {
        "archive": archive,
        "arguments": [
            *bundle.arguments,
            *(("-s", f"spark.environment={_locate_executor_archive(archive)}") if archive else ()),
        ],
        "sealed": sealed,
    }
    try:
        texts = {name: text.encode() for name, text in bundle.files.items()}
        for name, data in {**bundle.imported, **texts}.items():
            copy = path / driver.FILES_DIRECTORY / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
        (path / driver.JOB_FILE).write_text(json.dumps(job, indent=1))
        shutil.copyfile(driver.__file__, path / _PROGRAM_FILE)
        for module in (environment_cache, sealed_variables):
            shutil.copy(str(module.__file__), path)
        with zipfile.ZipFile(path / _JAR_FILE, "w") as jar_file:
            jar_file.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n\n")
    except OSError as e:
        raise _make_write_error(path, e) from None
    return Job(path, key)


def _locate_executor_archive(archive: str) -> str:
    """Return how executors get an archive: one with a path is read there, and is not sent."""
    return archive if "://" in archive else f"{LOCAL_SCHEME}{archive}"


def create_job_directory(checkpoint: Path) -> Path:
    """Make a directory for a job below a checkpoint, which only its owner can read.

    Raises:
        StreamerError: it cannot be made.
    """
    path = checkpoint / JOBS_DIRECTORY / f"{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:8]}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.mkdir(mode=0o700)
    except OSError as e:
        raise _make_write_error(path, e) from None
    return path


def _make_write_error(path: Path, error: OSError) -> StreamerError:
    return StreamerError(
        f"the job cannot be written to {path}: {error}; the checkpoint has to be a directory that "
        "this machine and all workers can write"
    )


def share_archive(packed: Path, checkpoint: Path) -> str:
    """Return where an archive lies for the workers; copy it there if it does not.

    Raises:
        StreamerError: it cannot be written.
    """
    shared = checkpoint / JOBS_DIRECTORY / packed.name
    draft = shared.with_name(f".{shared.name}.{os.getpid()}")
    try:
        if not shared.exists():
            shared.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.copyfile(packed, draft)
            draft.replace(shared)
    except OSError as e:
        draft.unlink(missing_ok=True)
        raise StreamerError(
            f"the workers' environment cannot be written to {shared}: {e}; make room there, or "
            "set spark.environment to an archive of `streamer pack` that all workers can read"
        ) from None
    return str(shared)


def delete_ended_jobs(checkpoint: Path, has_ended: Callable[[str], bool]) -> None:
    """Delete the jobs of drivers that have ended, and archives that no job asks for.

    Args:
        checkpoint: the directory of the checkpoint.
        has_ended: tells it of a driver, by its id.
    """
    archives_in_use = set()
    directory = checkpoint / JOBS_DIRECTORY
    for path in directory.glob("*/"):
        known = _read_json(path / _SUBMISSION_FILE)
        if known is not None and has_ended(known["id"]):
            shutil.rmtree(path, ignore_errors=True)
        elif (job := _read_json(path / driver.JOB_FILE)) is not None:
            archives_in_use.add(job["archive"])
    for archive in directory.glob(_ARCHIVE_PATTERN):
        if str(archive) not in archives_in_use:
            archive.unlink(missing_ok=True)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
