"""Watches the files of streams, and says whose have changed once they are still.

What counts is what a file holds, however it came there: written in place, renamed over, or reached
by a symbolic link that now leads elsewhere (as `..data` does in a ConfigMap of Kubernetes). The
system's notices only say when to look; should one be missed, a look every few seconds finds it.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

QUIET_S: Final = 0.3
"""Seconds for which files must stay as they are before they are believed."""

GONE_S: Final = 1.0
"""Seconds for which a file must be missing, or empty: programs that save a file may remove it."""

POLL_INTERVAL_S: Final = 5.0
"""Seconds between two looks that nothing asks for."""

Files = Callable[[], Mapping[str, Iterable[str]]]
"""Says which files each stream is made of, by its name; asked again for every look."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes since the last poll.

    Attributes:
        changed: streams that were there before, and one of whose files has changed.
        added: streams that are new.
        removed: streams that are gone.
        files: the files that have changed.
    """

    changed: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed)


class FileStates:
    """Compares what files hold from one look to the next. It has no thread and no clock."""

    def __init__(self, files: Files) -> None:
        """Take what there is now as known."""
        self._files = files
        self._stamps: dict[str, tuple[tuple[int, ...], str]] = {}
        self._known = self.current_digests()

    def find_changes(self) -> Changes:
        """Return what differs from what is known, which stays as it is.

        A file that a stream's config has come to read is known as it was read.
        """
        return self._compare(self.current_digests())

    def _compare(self, now: Mapping[str, Mapping[str, str]]) -> Changes:
        for name, files in self._known.items():
            for path, digest in now.get(name, {}).items():
                files.setdefault(path, digest)
        return _compare_digests(self._known, now)

    def has_missing_files(self) -> bool:
        """Whether a file is missing or empty now that was not before."""
        now = self.current_digests()
        return any(
            before and not now[name].get(path)
            for name, files in self._known.items()
            if name in now
            for path, before in files.items()
        ) or bool(self._known.keys() - now.keys())

    def commit_changes(self) -> Changes:
        """Return what differs, and know it from now on."""
        now = self.current_digests()
        changes, self._known = self._compare(now), now
        return changes

    def watched_folders(self) -> set[str]:
        """Return the folders in which something happens when a file changes."""
        paths = [path for files in self._known.values() for path in files]
        return {str(folder) for path in paths for folder in _folders(Path(path)) if folder.is_dir()}

    def current_digests(self) -> dict[str, dict[str, str]]:
        """Return what tells the content of each stream's files from another, by path."""
        return {
            name: {path: self._digest(path) for path in map(os.path.abspath, paths)}
            for name, paths in self._files().items()
        }

    def _digest(self, path: str) -> str:
        """Return what tells a file's content from another; empty when it is missing or empty."""
        try:
            stat = os.stat(path)
            stamp = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
            before = self._stamps.get(path)
            if before is None or before[0] != stamp:
                data = Path(path).read_bytes()
                before = (stamp, hashlib.blake2b(data).hexdigest() if data else "")
                self._stamps[path] = before
            return before[1]
        except OSError:
            return ""


def _folders(path: Path) -> Iterator[Path]:
    """Return the folders of a file, and of all that the links on its way lead through."""
    yield path.parent
    for _ in range(40):
        # A folder that is a link itself is replaced in the folder that it is in.
        for folder in path.parents:
            if folder.is_symlink():
                yield folder.parent
        if not path.is_symlink():
            break
        path = path.parent / os.readlink(path)
        yield path.parent
    yield Path(os.path.realpath(path)).parent


def _compare_digests(
    before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]
) -> Changes:
    changed, files = set(), set()
    for name in before.keys() & now.keys():
        paths = before[name].keys() | now[name].keys()
        differ = {path for path in paths if before[name].get(path) != now[name].get(path)}
        if differ:
            changed.add(name)
            files |= differ
    added, removed = now.keys() - before.keys(), before.keys() - now.keys()
    files |= {path for name in added for path in now[name]}
    files |= {path for name in removed for path in before[name]}
    return Changes(frozenset(changed), frozenset(added), frozenset(removed), frozenset(files))


class FileWatcher:
    """Watches in a thread of its own, from when it is made until it is closed."""

    def __init__(
        self,
        files: Files,
        on_change: Callable[[Changes], None],
        folders: Callable[[], Iterable[str]] = lambda: (),
        quiet: float = QUIET_S,
        gone: float = GONE_S,
        poll_interval: float = POLL_INTERVAL_S,
    ) -> None:
        """Begin; what there is now is known.

        Args:
            files: which files each stream is made of.
            on_change: called with changes, in the watcher's thread; it must not raise.
            folders: more folders in which files may appear; those below them are watched too.
            quiet: seconds for which files must stay as they are before `on_change` is called.
            gone: the same for files that are missing or empty.
            poll_interval: seconds between two looks that nothing asks for.
        """
        self._states = FileStates(files)
        self._on_change = on_change
        self._more_folders = folders
        self._quiet, self._gone, self._poll_interval = quiet, gone, poll_interval
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="watcher")
        self._thread.start()

    def close(self) -> None:
        """Watch no longer."""
        self._closed.set()
        self._thread.join(10)

    def _run(self) -> None:
        # Imported here: few commands watch anything. This is what the page of watchfiles on its
        # backend describes: all is heard of from the moment that it is made, where the simpler
        # `watch` begins to listen at some later time.
        from watchfiles._rust_notify import RustNotify

        while not self._closed.is_set():
            folders = self._watched_folders()
            try:
                with RustNotify(sorted(folders), False, False, 300, False, True) as notices:
                    self._report_changes()
                    while not self._closed.is_set() and self._watched_folders() == folders:
                        if (
                            notices.watch(50, 50, int(self._poll_interval * 1000), self._closed)
                            == "stop"
                        ):
                            return
                        self._report_changes()
            except (OSError, RuntimeError):
                # A folder went between two looks, or there are no more watches to be had.
                self._report_changes()
                self._closed.wait(self._poll_interval)

    def _watched_folders(self) -> set[str]:
        folders = self._states.watched_folders()
        for top in self._more_folders():
            for folder, _, _ in os.walk(top):
                folders.add(os.path.abspath(folder))
        return folders

    def _report_changes(self) -> None:
        """Poll; wait until changed files are still, and report them."""
        while self._states.find_changes() and not self._closed.is_set():
            if not self._wait_until_quiet():
                return
            if changes := self._states.commit_changes():
                self._on_change(changes)

    def _wait_until_quiet(self) -> bool:
        """Wait until no file changes any more; return False when the watcher is closed."""
        before, since = self._states.current_digests(), time.monotonic()
        while time.monotonic() - since < (
            self._gone if self._states.has_missing_files() else self._quiet
        ):
            if self._closed.wait(min(self._quiet / 3, 0.1)):
                return False
            now = self._states.current_digests()
            if now != before:
                before, since = now, time.monotonic()
        return True
