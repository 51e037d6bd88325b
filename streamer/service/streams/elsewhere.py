"""Checkpoints of a service's streams on another file system: `<url>/<id>` for each.

What is kept on this machine of each (its spool, journals, results) is where it is for a single
stream with that checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamer.engine.delivery import LogLine
from streamer.errors import StreamerError
from streamer.plan.place import local_directory
from streamer.service.streams.checkpoints import Checkpoints

if TYPE_CHECKING:
    from streamer.spark.checkpoint import Elsewhere
    from streamer.spark.hadoop import HadoopPath

_FOUND: Final = "found"
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
        self._doomed = self.own / "doomed"
        self._doomed.mkdir(exist_ok=True)

    def of(self, stream_id: str) -> Path:
        """See `Checkpoints`."""
        return local_directory(self.shown(stream_id), self._env)

    def shown(self, stream_id: str) -> str:
        """See `Checkpoints`."""
        return f"{self._url}/{stream_id}"

    def held(self, stream_id: str, log: LogLine) -> Elsewhere:
        """See `Checkpoints`."""
        from streamer.spark.elsewhere import hold, is_ours

        if (self._doomed / stream_id).exists():
            self._erase(stream_id)
        directory = self.of(stream_id)
        if is_ours(directory):
            return hold(self._root() / stream_id, directory, log)
        directory.mkdir(parents=True, exist_ok=True)
        found = directory / _FOUND
        found.touch()
        held = hold(self._root() / stream_id, directory, log)
        if held.stayed:
            # There was nothing.
            found.unlink()
        return held

    def settle(self, stream_id: str) -> None:
        """See `Checkpoints`."""
        (self.of(stream_id) / _FOUND).unlink(missing_ok=True)

    def clear(self, stream_id: str) -> None:
        """See `Checkpoints`; one that no stream of this service has started on stays there."""
        from streamer.spark.elsewhere import is_ours

        directory = self.of(stream_id)
        if is_ours(directory) and not (directory / _FOUND).exists():
            (self._doomed / stream_id).touch()
        if (self._doomed / stream_id).exists():
            self._erase(stream_id)
        super().clear(stream_id)

    def finish(self, log: LogLine) -> None:
        """See `Checkpoints`."""
        for path in self._doomed.iterdir():
            try:
                self._erase(path.name)
            except StreamerError as e:
                log("WARN", f"A checkpoint that is to be deleted is still there: {e}", {})

    def _erase(self, stream_id: str) -> None:
        from streamer.spark.elsewhere import OtherMachineError, erase

        try:
            erase(self._root() / stream_id, self.of(stream_id))
        except OtherMachineError:
            self._forget(stream_id)
            raise
        self._forget(stream_id)

    def _forget(self, stream_id: str) -> None:
        super().clear(stream_id)
        (self._doomed / stream_id).unlink()
