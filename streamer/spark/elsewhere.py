"""Take a checkpoint that is not on this machine: on any file system that Hadoop reaches.

Spark is started first, since it is what reaches it; the lease (`streamer.spark.lease`) sees to it
that one program uses it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from streamer.engine.location import remove_tree, replace_file
from streamer.plan.place import local_directory
from streamer.spark.checkpoint import CheckpointError, Elsewhere, lock_directory, used
from streamer.spark.hadoop import FilesError, HadoopFiles, HadoopPath
from streamer.spark.lease import Lease, TakenError
from streamer.spark.lock import DirectoryLock

LogLine = Callable[[str, str, Mapping[str, Any]], None]

_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"
_RENAMING: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
)
_S3: Final = {
    _MANAGER: "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager",
    # Files of state are sent like all others: the other way is by a second client, with which not
    # every server that speaks S3 gets on.
    "spark.hadoop.fs.s3a.optimized.copy.from.local.enabled": "false",
}
_PATIENCE: Final = 45.0
"""Seconds for the file system's first answer."""

_MARK: Final = "mark"
"""The file that names the last holding of the lease by this machine."""


class OtherMachineError(CheckpointError):
    """It is another machine's now."""


def checked(url: str) -> str:
    """Return the URL of a checkpoint as it is told to Spark.

    Raises:
        CheckpointError: it is none.
    """
    parts = urlsplit(url)
    if "@" in parts.netloc and parts.scheme != "abfss":
        # What stands before it may be a password.
        raise CheckpointError(
            f"the checkpoint {parts.scheme}://…@{parts.netloc.rpartition('@')[2]}{parts.path} has "
            "credentials in it: give them in spark.conf (spark.hadoop.fs.s3a.access.key, …), or by "
            "the environment"
        )
    if parts.scheme in ("s3", "s3n"):
        raise CheckpointError(
            f"the checkpoint is {url}: Spark reaches S3 by s3a://{parts.netloc}{parts.path}"
        )
    if not parts.path.strip("/"):
        raise CheckpointError(
            f"the checkpoint is {url}: expected a directory in it, such as "
            f"{url.rstrip('/')}/checkpoints/traffic"
        )
    return url.rstrip("/")


def settings_for(url: str) -> dict[str, str]:
    """Return how Spark writes the files of a checkpoint there, so that each is whole at once."""
    return dict(_S3) if url.startswith("s3a://") else {_MANAGER: _RENAMING}


def take_elsewhere(
    url: str,
    environ: Mapping[str, str],
    start: Callable[[int], SparkSession],
    log: LogLine,
    here: bool = False,
) -> tuple[Elsewhere, SparkSession]:
    """Take a checkpoint that is not on this machine.

    Args:
        url: where it is.
        environ: says where this machine keeps its own part (`XDG_STATE_HOME`).
        start: starts Spark; its JVM inherits this file descriptor.
        log: takes log lines.
        here: see `hold`.

    Raises:
        CheckpointError: another program has it, or it cannot be reached; the text says why.
    """
    url = checked(url)
    directory = local_directory(url, environ)
    lock = lock_directory(directory, shown=url)
    try:
        session = start(lock.file)
        return _leased(reached(session, url), directory, lock, log, here), session
    except BaseException:
        lock.close()
        raise


def hold(root: HadoopPath, directory: Path, log: LogLine, here: bool = False) -> Elsewhere:
    """Take a checkpoint that a Spark which runs reaches.

    Args:
        root: where it is.
        directory: for what stays on this machine.
        log: takes log lines.
        here: whether to leave it alone if another machine was the last to have it.

    Raises:
        OtherMachineError: another machine has it, or has had it and must not lose it.
        CheckpointError: another program of this machine has it, or the file system refuses.
    """
    lock = lock_directory(directory, shown=str(root))
    try:
        return _leased(root, directory, lock, log, here)
    except BaseException:
        lock.close()
        raise


def erase(root: HadoopPath, directory: Path) -> None:
    """Delete a checkpoint there that this machine was the last to have; what is here stays.

    Args:
        root: where it is.
        directory: for what stays on this machine.

    Raises:
        OtherMachineError: another machine has it, or has had it since.
        CheckpointError: the file system refuses; the text says why.
    """
    held = hold(root, directory, lambda *_: None, here=True)
    try:
        # A beat would write the lease's file again.
        held.lease.leave()
        root.delete()
    except FilesError as e:
        raise unreachable(str(root), str(e)) from None
    finally:
        held.lock.close()


def is_ours(directory: Path) -> bool:
    """Tell whether this machine has had the checkpoint whose other part is in a directory."""
    return (directory / _MARK).exists()


def _leased(
    root: HadoopPath, directory: Path, lock: DirectoryLock, log: LogLine, here: bool = False
) -> Elsewhere:
    try:
        lease = Lease(_TermFiles(root / "lease"))
        mark = directory / _MARK
        ours = mark.read_text() if mark.exists() else ""
        if here and lease.last() not in ("", ours):
            raise OtherMachineError(
                f"another machine was the last to use the checkpoint {root}, and has a part of it "
                "on its disk: do this there, or let the stream run here before"
            )
        text = "The checkpoint was not given back; waiting until it is sure that nobody uses it"
        former = lease.take(ours, lambda holder: log("WARN", text, {"last": holder}))
        if ours and not former:
            # It was deleted there, so that all begins anew.
            _clear(directory)
        replace_file(mark, lease.mark.encode())
    except TakenError as e:
        raise OtherMachineError(str(used(str(root), e.holder))) from None
    except FilesError as e:
        raise unreachable(str(root), str(e)) from None
    return Elsewhere(root, lock, directory, lease, former in (ours, ""))


def _clear(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir():
            remove_tree(path)
        elif path.name != "lock":
            path.unlink()


def unreachable(url: str, why: str) -> CheckpointError:
    """Return what is wrong when a file system refuses."""
    return CheckpointError(
        f"the checkpoint {url} cannot be used: {why}; see that it is there and may be written, and "
        "what spark.conf says of it (spark.hadoop.fs.…)"
    )


def reached(session: SparkSession, url: str) -> HadoopPath:
    """Return a place on another file system, once that has answered.

    Args:
        session: whose settings reach it.
        url: the place, as `checked` returns it.

    Raises:
        CheckpointError: it refuses, or does not answer; the text says why.
    """
    found: list[HadoopPath | FilesError] = []

    def reach() -> None:
        try:
            root = HadoopPath(HadoopFiles(session, url), url)
            for _ in root.glob("*"):
                break
            found.append(root)
        except FilesError as e:
            found.append(e)

    # One that is stuck in Java is left behind, and nobody waits for it at the end either.
    thread = threading.Thread(target=reach, daemon=True, name="reach")
    thread.start()
    thread.join(_PATIENCE)
    if not found:
        raise unreachable(url, f"it did not answer within {_PATIENCE:.0f} s")
    if isinstance(found[0], FilesError):
        raise unreachable(url, str(found[0]))
    return found[0]


@dataclass(frozen=True, slots=True)
class _TermFiles:
    """The files of a lease; `lease.Terms`."""

    place: HadoopPath

    def names(self) -> Iterator[str]:
        """See `Terms`."""
        return (path.name for path in self.place.glob("*"))

    def read(self, name: str) -> bytes:
        """See `Terms`."""
        return (self.place / name).read_bytes()

    def create(self, name: str, body: bytes) -> None:
        """See `Terms`."""
        self.place.files.create(str(self.place / name), body)

    def put(self, name: str, body: bytes) -> None:
        """See `Terms`."""
        (self.place / name).put(body)

    def delete(self, name: str) -> None:
        """See `Terms`."""
        with suppress(OSError):
            (self.place / name).delete()
