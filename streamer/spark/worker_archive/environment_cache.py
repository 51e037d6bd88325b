"""The environments that a worker's host has unpacked: each once, and for all that start there.

Executors and drivers run it by its path, before the environment is there: nothing but the standard
library is used, and nothing that a Python older than this program's lacks.

```
streamer/environments/   below the cache directory of the workers' user
  KEY/                   an environment; KEY is a digest of what `pack.json` says of it
  KEY.lock               held, shared, for as long as somebody runs from it
  .lock                  held by the one that unpacks
```
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator

MANIFEST = "pack.json"
"""What is first in an archive, and says what it holds."""

_COUNT_FILE = "unpacked.json"
_MAX_UNUSED = 1
"""How many environments stay that nobody runs from: the one before, for the way back."""
_UNPACK_TIMEOUT_S = 180.0
"""How long another process may take to unpack."""
_POLL_INTERVAL_S = 0.1


class EnvironmentCache:
    """A directory of environments, which processes of one user share."""

    def __init__(self, directory: str, report: Callable[[str], None] = lambda text: None) -> None:
        """Name the directory; it is made when something is unpacked.

        Args:
            directory: its path.
            report: is called with a line for the log.
        """
        self._directory = directory
        self._report = report

    def acquire(self, archive: str, key: str = "") -> tuple[str, int]:
        """Return the environment of an archive, unpacked, which nobody removes while it is used.

        Args:
            archive: the path of what `streamer pack` has made.
            key: see `key_of`, which is asked where it is empty. With it, the archive has to be
                there only when it is to be unpacked.

        Returns:
            The directory, and the descriptor of a lock: it is held until all processes that have
            inherited it have closed it.

        Raises:
            OSError: the archive cannot be read, or nothing can be written here.
        """
        os.makedirs(self._directory, 0o700, exist_ok=True)
        if os.stat(self._directory).st_uid != os.getuid():
            raise PermissionError(f"{self._directory} is another user's")
        key = key or archive_key(archive)
        place = os.path.join(self._directory, key)
        descriptor = self._lock_shared(key)
        try:
            if not _is_whole(place):
                with self._lock_exclusively():
                    if not _is_whole(place):
                        self._unpack(archive, place)
                        self._remove_unused(key)
        except BaseException:
            os.close(descriptor)
            raise
        return place, descriptor

    def _lock_shared(self, key: str) -> int:
        """Lock an environment against its removal; return the lock's descriptor."""
        path = os.path.join(self._directory, f"{key}.lock")
        while True:
            descriptor = _open_locked(path, fcntl.LOCK_SH)
            # Its time is that of the last use.
            os.utime(path)
            if _is_same_file(descriptor, path):
                return descriptor
            os.close(descriptor)

    @contextlib.contextmanager
    def _lock_exclusively(self) -> Iterator[None]:
        descriptor = _open_locked(os.path.join(self._directory, ".lock"), fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(descriptor)

    def _unpack(self, archive: str, place: str) -> None:
        began = time.monotonic()
        # Whoever has left a draft was killed, since only one unpacks.
        for name in os.listdir(self._directory):
            if name.startswith(".") and name != ".lock":
                shutil.rmtree(os.path.join(self._directory, name), ignore_errors=True)
        draft = os.path.join(self._directory, f".draft-{os.getpid()}")
        try:
            unpack(archive, draft)
            with open(os.path.join(draft, _COUNT_FILE), "w") as file:
                json.dump(_count_files(draft), file)
            if os.path.isdir(place):
                # Somebody has deleted some of it.
                os.rename(place, f"{draft}-damaged")
                self._report(f"the environment in {place} is not whole, and is unpacked again")
            os.rename(draft, place)
        finally:
            for path in (draft, f"{draft}-damaged"):
                shutil.rmtree(path, ignore_errors=True)
        seconds = time.monotonic() - began
        self._report(f"the environment is unpacked in {place}, once, in {seconds:.1f} s")

    def _remove_unused(self, key: str) -> None:
        """Remove the environments that nobody runs from, but for the one that was used last."""
        others = [
            name[: -len(".lock")]
            for name in os.listdir(self._directory)
            if name.endswith(".lock") and name not in (".lock", f"{key}.lock")
        ]
        paths = {other: os.path.join(self._directory, other) for other in others}
        others.sort(key=lambda other: os.stat(f"{paths[other]}.lock").st_mtime, reverse=True)
        unused = 0
        for other in others:
            lock = f"{paths[other]}.lock"
            descriptor = os.open(lock, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                unused += 1
                if unused > _MAX_UNUSED:
                    shutil.rmtree(paths[other], ignore_errors=True)
                    os.unlink(lock)
                    self._report(f"nobody runs from {paths[other]} any more: it is removed")
            except BlockingIOError:
                continue  # somebody does
            finally:
                os.close(descriptor)


def cache_directory(environ: dict[str, str]) -> str:
    """Return the directory of the cache: `streamer/environments` in the user's cache directory.

    Args:
        environ: has `XDG_CACHE_HOME`, or `HOME`.

    Raises:
        OSError: it has neither.
    """
    base = environ.get("XDG_CACHE_HOME") or ""
    if not os.path.isabs(base):
        if not os.path.isabs(environ.get("HOME") or ""):
            raise FileNotFoundError("neither XDG_CACHE_HOME nor HOME names a directory")
        base = os.path.join(environ["HOME"], ".cache")
    return os.path.join(base, "streamer", "environments")


def acquire_environment(
    archive: str, own: str, environ: dict[str, str], report: Callable[[str], None], key: str = ""
) -> tuple[str, int | None]:
    """Return an environment, unpacked: the host's, or where that does not go, one's own.

    Args:
        archive: the path of what `streamer pack` has made.
        own: the directory for one's own.
        environ: says where the cache is, see `cache_directory`.
        report: is called with a line for the log.
        key: see `EnvironmentCache.acquire`.

    Returns:
        The directory, and the descriptor that keeps it, if it is the host's.

    Raises:
        OSError: it cannot be unpacked in either place.
    """
    if not os.path.isdir(own):
        try:
            return EnvironmentCache(cache_directory(environ), report).acquire(archive, key)
        except OSError as e:
            if not os.path.exists(archive):
                raise
            report(f"the environment cannot be kept for others on this host, so {own} has one: {e}")
        draft = f"{own}.{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        unpack(archive, draft)
        os.rename(draft, own)
    return own, None


def archive_key(archive: str) -> str:
    """Return the digest of what an archive says of itself.

    Raises:
        OSError: it cannot be read, or is no archive of `streamer pack`.
    """
    try:
        with tarfile.open(archive, "r|gz") as file:
            entry = file.next()
            about = file.extractfile(entry) if entry is not None else None
            if entry is None or entry.name != MANIFEST or about is None:
                raise OSError(f"{archive} was not made by `streamer pack`")
            return hashlib.sha256(about.read()).hexdigest()[:16]
    except (tarfile.TarError, EOFError, zlib.error) as e:
        raise OSError(f"{archive} is not a complete archive: {e}") from None


def unpack(archive: str, into: str) -> None:
    """Unpack an archive into a new directory.

    Raises:
        OSError: it cannot be read, or the directory not written.
    """
    os.makedirs(into)
    tar = shutil.which("tar")
    if tar is not None:
        # Half the CPU seconds of Python's own.
        done = subprocess.run(
            [tar, "-xzf", archive, "-C", into, "--no-same-owner"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if done.returncode == 0:
            return
        shutil.rmtree(into, ignore_errors=True)
        os.makedirs(into)
    try:
        with gzip.open(archive) as raw:
            with tarfile.open(fileobj=raw, mode="r|") as file:
                # It is what `streamer pack` has made. Newer ones ask to be told what to refuse.
                if hasattr(tarfile, "tar_filter"):
                    file.extraction_filter = tarfile.tar_filter
                file.extractall(into)
            while raw.read(1 << 20):
                pass  # the check sum stands at the end
    except (tarfile.TarError, EOFError, zlib.error) as e:
        raise OSError(f"{archive} is not a complete archive: {e}") from None


def _open_locked(path: str, kind: int) -> int:
    """Open a lock file and lock it; wait for those who unpack, and not for ever."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + _UNPACK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(descriptor)
                raise TimeoutError(f"{path} was locked for {_UNPACK_TIMEOUT_S:.0f} s") from None
        except BaseException:
            os.close(descriptor)
            raise
        time.sleep(_POLL_INTERVAL_S)


def _is_same_file(descriptor: int, path: str) -> bool:
    """Return whether a lock file is still the one at its path."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def _is_whole(place: str) -> bool:
    try:
        with open(os.path.join(place, _COUNT_FILE)) as file:
            then, now = json.load(file), _count_files(place)
        # Hosts may change files, such as the certificates that they trust, and Python compiles.
        return bool(now["files"] >= then["files"] and now["empty"] <= then["empty"])
    except (OSError, ValueError, KeyError):
        return False


def _count_files(place: str) -> dict[str, int]:
    """Return how many files there are, and how many without content, as after a power cut."""
    files = empty = 0
    left = [place]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        left.append(entry.path)
                elif entry.name != _COUNT_FILE:
                    files += 1
                    empty += entry.stat(follow_symlinks=False).st_size == 0
    return {"files": files, "empty": empty}


def main(arguments: list[str]) -> None:
    """Become an executor's Python, which has an environment.

    Args:
        arguments: the archive's path, its key or nothing, and what that Python is to be given.
    """
    archive, key, *rest = arguments

    def report(text: str) -> None:
        print(f"streamer: {text}", file=sys.stderr, flush=True)

    try:
        own = os.path.abspath("environment")
        place, descriptor = acquire_environment(archive, own, dict(os.environ), report, key)
    except OSError as e:
        host = socket.gethostname()
        report(f"no environment on {host}: {archive} cannot be unpacked there: {e}")
        sys.exit(1)
    if descriptor is not None:
        # Python closes what is not to be inherited; this is held until the last worker has gone.
        os.set_inheritable(descriptor, True)
        if key and os.path.dirname(archive) == os.getcwd():
            # Spark has brought it to this executor alone, and keeps it for as long as a log.
            with contextlib.suppress(OSError):
                os.unlink(archive)
    environ = {**os.environ, "PYTHONPATH": os.path.join(place, "lib")}
    os.execve(sys.executable, [sys.executable, *rest], environ)


if __name__ == "__main__":
    main(sys.argv[1:])
