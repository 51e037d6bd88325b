"""Have on the disk what was written, so that it is there after the machine has lost its power."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path


def sync_data(file: int) -> None:
    """Have a file's contents and length on the disk.

    Args:
        file: its descriptor.

    Raises:
        OSError: it cannot be done; what was written last may be lost.
    """
    if sys.platform == "linux":
        # Without times of access and the like, which nobody needs after a crash.
        os.fdatasync(file)
    else:
        _sync_all(file)


def sync_directory(directory: int) -> None:
    """Have on the disk which files a directory has.

    Args:
        directory: its descriptor.

    Raises:
        OSError: it cannot be done; files that were made or renamed last may be lost.
    """
    _sync_all(directory)


def _sync_all(file: int) -> None:
    """Have contents and all that the file system says of them on the disk."""
    if sys.platform == "darwin":
        import errno
        import fcntl

        # fsync(2) of macOS: after fsync, data may still be in the memory of the drive, which writes
        # it in an order of its own. F_FULLFSYNC empties that too, where the file system has it.
        try:
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)
            return
        except OSError as e:
            if e.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
    os.fsync(file)


def make_private_directory(directory: Path) -> None:
    """Make a directory for what others must not read: 0700; those above it get the usual mode.

    One that is there already is closed to others when it is this user's, whoever has made it.

    Raises:
        OSError: it cannot be made.
    """
    try:
        directory.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        restrict_to_owner(directory)
        if not directory.is_dir():
            raise


def restrict_to_owner(path: Path) -> None:
    """Take from others what they may do with a file or a directory of this user; not with others'.

    On a file system without modes, nothing happens.
    """
    with suppress(OSError):
        status = path.stat()
        if status.st_uid == os.geteuid() and status.st_mode & 0o077:
            path.chmod(status.st_mode & 0o7700)
