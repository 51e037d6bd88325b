"""Take a checkpoint that is not on this machine: on any file system that Hadoop reaches.

Spark is started first, since it is what reaches it; the lease (`streamer.spark.checkpoint.lease`)
sees to it that one program uses it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from streamer.core.log_format import LogLine
from streamer.engine.planner.checkpoint_path import remove_tree, replace_file
from streamer.plan.checkpoint_dir import local_directory
from streamer.spark.checkpoint.checkpoint import (
    CheckpointError,
    RemoteCheckpoint,
    in_use_error,
    lock_directory,
)
from streamer.spark.checkpoint.directory_lock import DirectoryLock
from streamer.spark.checkpoint.hadoop_files import FilesError, HadoopFiles, HadoopPath
from streamer.spark.checkpoint.lease import Lease, LeaseTakenError

_FILE_MANAGER_SETTING: Final = "spark.sql.streaming.checkpointFileManagerClass"
_RENAMING_FILE_MANAGER: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
)
_S3_SETTINGS: Final = {
    _FILE_MANAGER_SETTING: (
        "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    ),
    # Files of state are sent like all others: the other way is by a second client, with which not
    # every server that speaks S3 gets on.
    "spark.hadoop.fs.s3a.optimized.copy.from.local.enabled": "false",
}
_OTHER_NAMES: Final = {"s3": "s3a", "s3n": "s3a"}
_CONTAINER_SCHEMES: Final = ("abfs", "abfss")
"""Schemes whose URLs have a container before the `@`."""

_CONNECT_TIMEOUT_S: Final = 45.0
"""Seconds for the file system's first answer."""

_LEASE_MARK_FILE: Final = "mark"
"""The file that names the last holding of the lease by this machine."""


class OtherMachineError(CheckpointError):
    """Raised when the checkpoint is another machine's now."""


def validate_url(url: str) -> str:
    """Check the URL of a checkpoint, and return it as Spark takes it.

    Raises:
        CheckpointError: it is none.
    """
    parts = urlsplit(url)
    if "@" in parts.netloc and parts.scheme not in _CONTAINER_SCHEMES:
        # What stands before it may be a password.
        raise CheckpointError(
            f"the checkpoint {parts.scheme}://…@{parts.netloc.rpartition('@')[2]}{parts.path} has "
            "credentials in it: give them in spark.conf (spark.hadoop.fs.s3a.access.key, …), or by "
            "the environment"
        )
    if parts.scheme in _OTHER_NAMES:
        right = f"{_OTHER_NAMES[parts.scheme]}://{parts.netloc}{parts.path}"
        raise CheckpointError(f"the checkpoint is {url}: Spark reaches S3 by {right}")
    if parts.scheme in _CONTAINER_SCHEMES and not re.fullmatch(r"[^@]+@[^@]+", parts.netloc):
        raise CheckpointError(
            f"the checkpoint is {url}: expected a container and the host of its account, such as "
            "abfss://container@account.dfs.core.windows.net/checkpoints/traffic"
        )
    if not parts.path.strip("/"):
        raise CheckpointError(
            f"the checkpoint is {url}: expected a directory in it, such as "
            f"{url.rstrip('/')}/checkpoints/traffic"
        )
    return url.rstrip("/")


def file_manager_settings(url: str) -> dict[str, str]:
    """Return how Spark writes the files of a checkpoint there, so that each is whole at once."""
    return (
        dict(_S3_SETTINGS)
        if url.startswith("s3a://")
        else {_FILE_MANAGER_SETTING: _RENAMING_FILE_MANAGER}
    )


def start_and_acquire(
    url: str,
    environ: Mapping[str, str],
    start: Callable[[int], SparkSession],
    log: LogLine,
    only_if_last_here: bool = False,
) -> tuple[RemoteCheckpoint, SparkSession]:
    """Take a checkpoint that is not on this machine.

    Args:
        url: where it is.
        environ: says where this machine keeps its own part (`XDG_STATE_HOME`).
        start: starts Spark; its JVM inherits this file descriptor.
        log: takes log lines.
        only_if_last_here: see `acquire`.

    Raises:
        CheckpointError: another program has it, or it cannot be reached; the text says why.
    """
    url = validate_url(url)
    directory = local_directory(url, environ)
    lock = lock_directory(directory, checkpoint=url)
    try:
        session = start(lock.file)
        return _acquire_lease(
            connect(session, url), directory, lock, log, only_if_last_here
        ), session
    except BaseException:
        lock.close()
        raise


def acquire(
    root: HadoopPath, directory: Path, log: LogLine, only_if_last_here: bool = False
) -> RemoteCheckpoint:
    """Take a checkpoint that a Spark which runs reaches.

    Args:
        root: where it is.
        directory: for what stays on this machine.
        log: takes log lines.
        only_if_last_here: whether to leave it alone if another machine was the last to have it.

    Raises:
        OtherMachineError: another machine has it, or has had it and must not lose it.
        CheckpointError: another program of this machine has it, or the file system refuses.
    """
    lock = lock_directory(directory, checkpoint=str(root))
    try:
        return _acquire_lease(root, directory, lock, log, only_if_last_here)
    except BaseException:
        lock.close()
        raise


def delete_checkpoint(root: HadoopPath, directory: Path) -> None:
    """Delete a checkpoint there that this machine was the last to have; what is here stays.

    Args:
        root: where it is.
        directory: for what stays on this machine.

    Raises:
        OtherMachineError: another machine has it, or has had it since.
        CheckpointError: the file system refuses; the text says why.
    """
    checkpoint = acquire(root, directory, lambda *_: None, only_if_last_here=True)
    try:
        # A beat would write the lease's file again.
        checkpoint.lease.stop_beating()
        root.delete()
    except FilesError as e:
        raise unreachable_error(str(root), str(e)) from None
    finally:
        checkpoint.lock.close()


def was_used_here(directory: Path) -> bool:
    """Return whether this machine has had the checkpoint whose other part is in a directory."""
    return (directory / _LEASE_MARK_FILE).exists()


def _acquire_lease(
    root: HadoopPath,
    directory: Path,
    lock: DirectoryLock,
    log: LogLine,
    only_if_last_here: bool = False,
) -> RemoteCheckpoint:
    try:
        lease = Lease(_HadoopLeaseFiles(root / "lease"))
        mark = directory / _LEASE_MARK_FILE
        own_mark = mark.read_text() if mark.exists() else ""
        if only_if_last_here and lease.last_mark() not in ("", own_mark):
            raise OtherMachineError(
                f"another machine was the last to use the checkpoint {root}, and has a part of it "
                "on its disk: do this there, or let the stream run here before"
            )
        text = "The checkpoint was not released; waiting until it is sure that nobody uses it"
        previous_mark = lease.acquire(own_mark, lambda holder: log("WARN", text, {"last": holder}))
        if own_mark and not previous_mark:
            # It was deleted there, so that all begins anew.
            _clear_directory(directory)
        replace_file(mark, lease.mark.encode())
    except LeaseTakenError as e:
        raise OtherMachineError(str(in_use_error(str(root), e.holder))) from None
    except FilesError as e:
        raise unreachable_error(str(root), str(e)) from None
    return RemoteCheckpoint(root, lock, directory, lease, previous_mark in (own_mark, ""))


def _clear_directory(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir():
            remove_tree(path)
        elif path.name != "lock":
            path.unlink()


def unreachable_error(url: str, reason: str) -> CheckpointError:
    """Return what is wrong when a file system refuses."""
    return CheckpointError(
        f"the checkpoint {url} cannot be used: {reason}; see that it is there and may be written, "
        "and what spark.conf says of it (spark.hadoop.fs.…)"
    )


def connect(session: SparkSession, url: str) -> HadoopPath:
    """Return a place on another file system, once that has answered.

    Args:
        session: whose settings reach it.
        url: the place, as `checked` returns it.

    Raises:
        CheckpointError: it refuses, or does not answer; the text says why.
    """
    results: list[HadoopPath | FilesError] = []

    def reach() -> None:
        try:
            root = HadoopPath(HadoopFiles(session, url), url)
            for _ in root.glob("*"):
                break
            results.append(root)
        except FilesError as e:
            results.append(e)

    # One that is stuck in Java is left behind, and nobody waits for it at the end either.
    thread = threading.Thread(target=reach, daemon=True, name="reach")
    thread.start()
    thread.join(_CONNECT_TIMEOUT_S)
    if not results:
        raise unreachable_error(url, f"it did not answer within {_CONNECT_TIMEOUT_S:.0f} s")
    if isinstance(results[0], FilesError):
        raise unreachable_error(url, str(results[0]))
    return results[0]


@dataclass(frozen=True, slots=True)
class _HadoopLeaseFiles:
    """The files of a lease; see `lease.LeaseFiles`."""

    directory: HadoopPath

    def list_names(self) -> Iterator[str]:
        """Return the names of the lease's files."""
        return (path.name for path in self.directory.glob("*"))

    def read(self, name: str) -> bytes:
        """Return the content of a file; as `LeaseFiles.read`."""
        return (self.directory / name).read_bytes()

    def create(self, name: str, body: bytes) -> None:
        """Create a file; as `LeaseFiles.create`."""
        self.directory.files.create(str(self.directory / name), body)

    def put(self, name: str, body: bytes) -> None:
        """Replace a file; as `LeaseFiles.put`."""
        (self.directory / name).put(body)

    def delete(self, name: str) -> None:
        """Delete a file; as `LeaseFiles.delete`."""
        with suppress(OSError):
            (self.directory / name).delete()
