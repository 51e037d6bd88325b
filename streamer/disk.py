"""Have on the disk what was written, so that it is there after the machine has lost its power."""

from __future__ import annotations

import os
import sys


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
