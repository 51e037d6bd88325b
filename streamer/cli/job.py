"""What a driver that runs on a cluster needs of this machine, in a directory that both can see."""

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

from streamer.cli import driver
from streamer.cli.contents import Contents
from streamer.errors import StreamerError
from streamer.packing import environment_cache
from streamer.packing.archive import LOCAL

DIRECTORY: Final = "submitted"
"""Where jobs lie below a checkpoint."""

_PROGRAM: Final = "start.py"
_JAR: Final = "start.jar"
_SUBMISSION: Final = "submission.json"
_ARCHIVES: Final = "environment-*.tar.gz"


@dataclass(frozen=True, slots=True)
class Job:
    """A directory with all that a driver begins with; only its owner can read it.

    Attributes:
        directory: its path, which is the same on the cluster.
    """

    directory: Path

    @property
    def program(self) -> Path:
        """The Python file that the cluster starts."""
        return self.directory / _PROGRAM

    @property
    def jar(self) -> str:
        """The URL of the jar that Spark asks for."""
        return (self.directory / _JAR).as_uri()

    def submitted(self, id: str) -> None:
        """Note what the master calls the driver."""
        (self.directory / _SUBMISSION).write_text(json.dumps({"id": id}))

    def outcome(self) -> dict[str, Any] | None:
        """Return what the driver has left: `code`, `host` and the `last` lines of its log."""
        return _read(self.directory / driver.OUTCOME)


def write_job(contents: Contents, checkpoint: Path, archive: str | None, jars: list[Path]) -> Job:
    """Write a job.

    Args:
        contents: what is to run.
        checkpoint: the directory of the checkpoint, an absolute path.
        archive: the workers' environment, a path or URL that they read; None for what they have.
        jars: those for Kafka, on this machine.

    Raises:
        StreamerError: it cannot be written.
    """
    path = new_directory(checkpoint)
    about = {
        "archive": archive,
        "arguments": [
            *contents.arguments,
            *(("-s", f"spark.environment={_for_executors(archive)}") if archive else ()),
        ],
        "variables": {
            **contents.variables(),
            **({"STREAMER_JARS": str(path / "jars")} if jars else {}),
        },
    }
    try:
        texts = {name: text.encode() for name, text in contents.files.items()}
        for name, data in {**contents.imported, **texts}.items():
            copy = path / driver.FILES / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
        (path / driver.JOB).write_text(json.dumps(about, indent=1))
        shutil.copyfile(driver.__file__, path / _PROGRAM)
        shutil.copy(environment_cache.__file__, path)
        with zipfile.ZipFile(path / _JAR, "w") as jar_file:
            jar_file.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n\n")
        for jar in jars:
            (path / "jars").mkdir(exist_ok=True)
            shutil.copy(jar, path / "jars")
    except OSError as e:
        raise _unwritten(path, e) from None
    return Job(path)


def _for_executors(archive: str) -> str:
    """Return how executors get an archive: one with a path is read there, and is not sent."""
    return archive if "://" in archive else f"{LOCAL}{archive}"


def new_directory(checkpoint: Path) -> Path:
    """Make a directory for a job below a checkpoint, which only its owner can read.

    Raises:
        StreamerError: it cannot be made.
    """
    path = checkpoint / DIRECTORY / f"{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:8]}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.mkdir(mode=0o700)
    except OSError as e:
        raise _unwritten(path, e) from None
    return path


def _unwritten(path: Path, error: OSError) -> StreamerError:
    return StreamerError(
        f"the job cannot be written to {path}: {error}; the checkpoint has to be a directory that "
        "this machine and all workers can write"
    )


def shared_archive(packed: Path, checkpoint: Path) -> str:
    """Return where an archive lies for the workers; copy it there if it does not.

    Raises:
        StreamerError: it cannot be written.
    """
    shared = checkpoint / DIRECTORY / packed.name
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


def forget_ended(checkpoint: Path, ended: Callable[[str], bool]) -> None:
    """Delete the jobs of drivers that have ended, and archives that no job asks for.

    Args:
        checkpoint: the directory of the checkpoint.
        ended: tells it of a driver, by its id.
    """
    wanted = set()
    place = checkpoint / DIRECTORY
    for path in place.glob("*/"):
        known = _read(path / _SUBMISSION)
        if known is not None and ended(known["id"]):
            shutil.rmtree(path, ignore_errors=True)
        elif (job := _read(path / driver.JOB)) is not None:
            wanted.add(job["archive"])
    for archive in place.glob(_ARCHIVES):
        if str(archive) not in wanted:
            archive.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
