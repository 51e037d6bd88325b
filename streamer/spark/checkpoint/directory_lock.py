"""The lock of a directory: one program has it, its JVM has it with it, and others see who that is.

The lock is flock's, so it is gone when the last process that has it is gone. The JVM inherits it
and may outlive a program that was killed; on Linux one can tell which processes those are.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from streamer.core.disk import restrict_to_owner

_JVM_EXIT_TIMEOUT_S: Final = 90.0
"""Seconds for the JVM of a program that was killed: one of a cluster says goodbye to executors."""


JVM_LOCK_FILE: Final = "jvm.lock"
"""The file that a JVM locks which was there before the checkpoint's lock, see `JvmLock`."""


class Holder(NamedTuple):
    """The program that has signed a lock.

    Attributes:
        host: the name of its machine.
        pid: its process there.
        url: where it answers; empty for nowhere.
    """

    host: str
    pid: int
    url: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}{' at ' if self.url else ''}{self.url}"


_CHECKPOINT_FILES: Final = re.compile(
    r"lock|jvm\.lock|(streamer|files[^/]*)\.json|(running|drain)\.plan|signals|results|submitted|lost\+found"
    r"|(spark|spool|seed|dynamic)(-.*)?|.*\.(tmp|crc)"
)
"""What stands in a directory that is a checkpoint and nothing else."""


def _make_private_directory(directory: Path) -> None:
    """Make the directory of a checkpoint, and close it to others: it holds messages.

    One that somebody uses for more than that keeps its mode; what the checkpoint has in it is
    closed then.

    Raises:
        OSError: it cannot be made.
    """
    try:
        directory.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        entries = list(directory.iterdir())
        own = [path for path in entries if _CHECKPOINT_FILES.fullmatch(path.name)]
        for path in [directory] if len(own) == len(entries) else own:
            if not path.is_symlink():
                restrict_to_owner(path)


class DirectoryLock:
    """A lock that can be taken.

    Attributes:
        file: its file descriptor, for the JVM to inherit.
    """

    def __init__(self, directory: Path) -> None:
        """Open the lock's file.

        Raises:
            OSError: the directory cannot be made, or written.
        """
        _make_private_directory(directory)
        self.file = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        self._jvm_lock = directory / JVM_LOCK_FILE

    def acquire(self) -> bool:
        """Take and sign it; False when another program has it."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if self._has_jvm():
            fcntl.flock(self.file, fcntl.LOCK_UN)
            return False
        self.sign()
        return True

    def _has_jvm(self) -> bool:
        """Whether a JVM that has not inherited the lock works here: that of a killed program."""
        try:
            file = os.open(self._jvm_lock, os.O_RDWR)
        except OSError:
            return False
        try:
            # Java's locks are POSIX's, which others cannot take with flock.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return True
        except OSError:  # a file system without such locks
            return False
        finally:
            os.close(file)
        return False

    def sign(self, url: str = "") -> None:
        """Write into the lock who has it: host, process, and the URL of its HTTP server."""
        mark = Holder(socket.gethostname(), os.getpid(), url)
        with suppress(OSError):  # a disk that is full takes no signature, and needs none
            os.ftruncate(self.file, 0)
            os.pwrite(self.file, json.dumps(mark).encode(), 0)

    def holder(self) -> Holder | None:
        """Return who has signed it last; None when that cannot be read."""
        try:
            host, pid, *url = json.loads(os.pread(self.file, 4096, 0))
            return Holder(str(host), int(pid), str(*url))
        except (ValueError, TypeError, OSError):
            return None

    def is_owner_dead(self) -> bool:
        """Whether the program that has signed it was on this machine, and is gone."""
        holder = self.holder()
        if holder is None or holder.host != socket.gethostname():
            return False
        return not _is_running(holder.pid)

    def holder_pids(self) -> frozenset[int]:
        """Return the processes of this machine that have it, by the kernel's word (Linux)."""
        lock_stat, pids = os.fstat(self.file), set()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended, or is another user's
                for link in (process / "fd").iterdir():
                    with suppress(OSError):
                        link_stat = link.stat()
                        same = (link_stat.st_dev, link_stat.st_ino) == (
                            lock_stat.st_dev,
                            lock_stat.st_ino,
                        )
                        # Whoever waits for the lock has its file open too.
                        if same and "FLOCK" in (process / "fdinfo" / link.name).read_text():
                            pids.add(int(process.name))
        return frozenset(pids)

    def kill_holder(self, pid: int) -> bool:
        """Kill a process if it has the lock, and no other that got its number meanwhile."""
        if sys.platform != "linux":
            return False  # Nobody is known to have it: see `holder_pids`.
        with suppress(OSError):
            process = os.pidfd_open(pid)
            try:
                if pid in self.holder_pids():
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    return True
            finally:
                os.close(process)
        return False

    def close(self) -> None:
        """Release the lock; a JVM that has inherited it holds it until it ends."""
        os.close(self.file)


def acquire_within(lock: DirectoryLock, wait: float) -> bool:
    """Take a lock within a time; the JVM of a program that was killed is given more of it.

    Args:
        lock: the lock.
        wait: seconds; 0 for one attempt.

    Returns:
        Whether it was taken; if not, another program has it.
    """
    began = time.monotonic()
    while not lock.acquire():
        timeout = _JVM_EXIT_TIMEOUT_S if wait and lock.is_owner_dead() else wait
        if time.monotonic() >= began + timeout:
            return False
        time.sleep(0.1)
    return True


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # One that was killed, and whose parent has not looked yet, is nothing but a number.
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return state not in "ZX"
