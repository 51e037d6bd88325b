"""Whether a file is the one that was read before, by the bytes that were seen of it.

A name may come to stand for another file between two starts, as when logs are rotated. Numbers of
inodes do not say it: a file that is restored or edited in place gets another one, and a file that
is written over keeps its own. What was read says it, and a file to which something was appended
still begins with it.
"""

from __future__ import annotations

import hashlib
import os
from typing import Final, NamedTuple

_SAMPLE_BYTES: Final = 1 << 10
_DIGEST_BYTES: Final = 8


class FileIdentity(NamedTuple):
    """The identity of a file.

    Attributes:
        size: bytes from its beginning on that were there.
        digest: of the first KiB and the last KiB of these.
    """

    size: int
    digest: str

    def matches(self, path: str) -> bool:
        """Return whether the file still begins with what was seen; one that has gone does."""
        try:
            return read_identity(path, self.size).digest == self.digest
        except FileNotFoundError:
            return True


def read_identity(path: str, size: int) -> FileIdentity:
    """Return what can be seen of the first bytes of a file.

    Args:
        path: the file's.
        size: how many bytes; where it has fewer, the digest is empty.

    Raises:
        OSError: it is not there, or cannot be read.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        head = os.pread(file, min(_SAMPLE_BYTES, size), 0)
        tail = os.pread(file, min(_SAMPLE_BYTES, size), max(size - _SAMPLE_BYTES, 0))
    finally:
        os.close(file)
    if min(len(head), len(tail)) < min(_SAMPLE_BYTES, size):
        return FileIdentity(size, "")
    return FileIdentity(size, hashlib.blake2b(head + tail, digest_size=_DIGEST_BYTES).hexdigest())
