"""Checkpoints of a service's streams on another file system: `<url>/<id>` for each.

What is kept on this machine of each (its spool, journals, results) is where it is for a single
stream with that checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.plan.checkpoint_dir import local_directory
from streamer.service.fleet.checkpoints import Checkpoints

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import RemoteCheckpoint
    from streamer.spark.checkpoint.hadoop_files import HadoopPath

_PREEXISTING_MARK: Final = "found"
"""Marks a checkpoint that was there before this service had such a stream; until that has started,
it is not the service's to delete."""


class RemoteCheckpoints(Checkpoints):
    """Checkpoints at a URL. A lease for each keeps the services of other machines away."""

    def __init__(self, url: str, env: Mapping[str, str], root: Callable[[], HadoopPath]) -> None:
        """Take where they are.

        Args:
            url: of all of them.
            env: says where this machine keeps its own part (`XDG_STATE_HOME`).
            root: gives the place of the URL once Spark has started, which reaches it.
        """
        super().__init__(local_directory(url, env))
        self._url = url
        self._env = env
        self._root = root
        # What is to be deleted there may not be so at once: it is noted before.
        self._to_delete = self.service_directory / "doomed"
        self._to_delete.mkdir(exist_ok=True)

    def directory_of(self, stream_id: str) -> Path:
        """Return the directory of a stream on this machine."""
        return local_directory(self.display_path(stream_id), self._env)

    def display_path(self, stream_id: str) -> str:
        """Return where the checkpoint of a stream is, for people."""
        return f"{self._url}/{stream_id}"

    def acquire(self, stream_id: str, log: LogLine) -> RemoteCheckpoint:
        """Return the checkpoint of a stream as a run takes it."""
        from streamer.spark.checkpoint.remote_checkpoint import acquire, was_used_here

        if (self._to_delete / stream_id).exists():
            self._delete_remote(stream_id)
        directory = self.directory_of(stream_id)
        if was_used_here(directory):
            return acquire(self._root() / stream_id, directory, log)
        directory.mkdir(parents=True, exist_ok=True)
        mark = directory / _PREEXISTING_MARK
        mark.touch()
        checkpoint = acquire(self._root() / stream_id, directory, log)
        if checkpoint.has_current_local_state:
            # There was nothing.
            mark.unlink()
        return checkpoint

    def mark_started(self, stream_id: str) -> None:
        """Note that a stream has started on its checkpoint, which is its own from now on."""
        (self.directory_of(stream_id) / _PREEXISTING_MARK).unlink(missing_ok=True)

    def delete(self, stream_id: str) -> None:
        """Delete a checkpoint; one that no stream of this service has started on stays there."""
        from streamer.spark.checkpoint.remote_checkpoint import was_used_here

        directory = self.directory_of(stream_id)
        if was_used_here(directory) and not (directory / _PREEXISTING_MARK).exists():
            (self._to_delete / stream_id).touch()
        if (self._to_delete / stream_id).exists():
            self._delete_remote(stream_id)
        super().delete(stream_id)

    def delete_pending(self, log: LogLine) -> None:
        """Delete what an earlier start did not come to delete; called before streams start."""
        for path in self._to_delete.iterdir():
            try:
                self._delete_remote(path.name)
            except StreamerError as e:
                log("WARN", f"A checkpoint that is to be deleted is still there: {e}", {})

    def _delete_remote(self, stream_id: str) -> None:
        from streamer.spark.checkpoint.remote_checkpoint import OtherMachineError, delete_checkpoint

        try:
            delete_checkpoint(self._root() / stream_id, self.directory_of(stream_id))
        except OtherMachineError:
            self._delete_local(stream_id)
            raise
        self._delete_local(stream_id)

    def _delete_local(self, stream_id: str) -> None:
        super().delete(stream_id)
        (self._to_delete / stream_id).unlink()
