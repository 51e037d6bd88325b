"""Directories of a service's checkpoints, and of the service itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamer.core.errors import StreamerError
from streamer.plan.checkpoint_dir import is_remote, local_directory
from streamer.service.fleet.checkpoints import Checkpoints


class ServiceCheckpoints:
    """A directory of this machine, or a URL with one for what stays on this machine.

    Attributes:
        url: where the checkpoints are; empty for the directory.
        directory: on this machine.
    """

    def __init__(self, named: str | None, standby: bool, env: Mapping[str, str]) -> None:
        """Find the directory.

        Args:
            named: what the command line says; None for the user's own directory.
            standby: whether the service waits for another one's lock.
            env: says where that is (`XDG_STATE_HOME`).

        Raises:
            StreamerError: the URL is of no use, or does not go together with `--standby`.
        """
        named = named or _default_directory(env)
        self._env = env
        self._root: Any = None
        if not is_remote(named):
            self.url, self.directory = "", Path(named.removeprefix("file://")).absolute()
            return
        # Imported here: Spark's Python takes a second.
        from streamer.spark.checkpoint.remote_checkpoint import validate_url

        self.url = validate_url(named)
        if standby:
            raise StreamerError(
                f"--checkpoints is {self.url}, and --standby waits for the lock of a directory "
                "that both services have: leave --standby out, and let what starts the service "
                "start another one when it ends"
            )
        self.directory = local_directory(self.url, env)

    def __str__(self) -> str:
        return self.url or str(self.directory)

    def spark_settings(self) -> Mapping[str, str]:
        """Return how Spark writes checkpoints there."""
        if not self.url:
            return {}
        from streamer.spark.checkpoint.remote_checkpoint import file_manager_settings

        return file_manager_settings(self.url)

    def make_checkpoints(self) -> Checkpoints:
        """Return the checkpoints; those at a URL can be used after `connect`."""
        if not self.url:
            return Checkpoints(self.directory)
        from streamer.service.fleet.remote_checkpoints import RemoteCheckpoints

        return RemoteCheckpoints(self.url, self._env, lambda: self._root)

    def connect(self, session: Any) -> Any:
        """Return the place as a session of Spark's reaches it.

        Raises:
            CheckpointError: it does not answer; the text says why.
        """
        if not self.url:
            return self.directory
        from streamer.spark.checkpoint.remote_checkpoint import connect

        self._root = connect(session, self.url)
        return self._root


def _default_directory(env: Mapping[str, str]) -> str:
    state = env.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "streamer", "streams")
