"""Objects that outlive a task: caches, rate limits, connections, one for a stream and a process.

A worker builds a stream's components anew for every task, and a task is forgotten when it ends. A
cache in memory, a pool of connections or a limit of requests must not be: they last as long as the
worker process, in the store of their stream, and nothing else does. A component asks for one with
`context.lasting(key, make)`.

What all workers of a machine must share, such as how often something was done, is in files of a
directory that they all know: `context.shared_directory()`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Final, TypeVar

T = TypeVar("T")


class WorkerResources:
    """The objects of one stream that outlive tasks. Threads may share it.

    Attributes:
        run: the stream's run; empty for none.
    """

    def __init__(self, run: str = "") -> None:
        """Begin with nothing; `run` is the stream's run, empty for none."""
        self.run = run
        self._objects: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is kept under a key; it is made the first time.

        Args:
            key: tells it from all others of the stream.
            make: called at most once for a key; when it raises, nothing is kept.
        """
        with self._lock:
            if key not in self._objects:
                self._objects[key] = make()
            existing: T = self._objects[key]
            return existing

    def shared_directory(self) -> Path:
        """Return a directory that all processes of the run on this machine share.

        A store without a run has one by itself.
        """
        if not self.run:
            return self.get(_Directory, _Directory).path
        path = self.find_shared_directory()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def find_shared_directory(self) -> Path:
        """Return where the directory is that all processes of a run share, if one has made it."""
        return _directory_of(self.run)


class _Directory:
    """A directory that goes with the store that it belongs to."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(
            prefix="streamer-", ignore_cleanup_errors=True
        )
        self.path = Path(self._temporary.name)

    def __del__(self) -> None:
        self._temporary.cleanup()


_RESOURCES_BY_RUN: Final[dict[str, WorkerResources]] = {}
_LOCK: Final = threading.Lock()


def resources_of_run(run: str) -> WorkerResources:
    """Return the store of a stream in this process.

    Args:
        run: names one run of one stream (`Plan.run`); empty for what lasts no longer than the
            object that asks, which gets a store of its own.
    """
    if not run:
        return WorkerResources()
    with _LOCK:
        return _RESOURCES_BY_RUN.setdefault(run, WorkerResources(run))


def new_run_id() -> str:
    """Name a run that this process drives; what its processes share goes when this one ends."""
    run = uuid.uuid4().hex
    atexit.register(forget_run, run)
    return run


def forget_run(run: str) -> None:
    """Forget what a run has kept in this process, and remove what its processes share.

    For the driver, when the run has ended; its workers' processes end with what they keep.
    """
    with _LOCK:
        _RESOURCES_BY_RUN.pop(run, None)
    if run:
        shutil.rmtree(_directory_of(run), ignore_errors=True)


def _directory_of(run: str) -> Path:
    # A run's name cannot be guessed, so nobody else can have made it.
    return Path(tempfile.gettempdir()) / f"streamer-{os.geteuid()}-{run}"


# A process that is forked must not talk over its parent's connections.
os.register_at_fork(after_in_child=_RESOURCES_BY_RUN.clear)
