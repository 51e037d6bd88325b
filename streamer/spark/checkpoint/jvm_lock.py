"""Lock of a checkpoint by the JVM of a program, beside the one that the program has.

A JVM that is started for one stream inherits the lock of its checkpoint, and so holds it until it
ends, even when the program is killed. A JVM that was there before takes this one instead.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from streamer.core.errors import StreamerError
from streamer.spark.checkpoint.directory_lock import JVM_LOCK_FILE
from streamer.spark.compat import java_packages


class JvmLock:
    """Lock of a directory that a JVM has until `close`, or until it ends."""

    def __init__(self, session: Any, directory: Path) -> None:
        """Take the lock.

        Args:
            session: of the Spark in that JVM.
            directory: the checkpoint, whose lock this program has.

        Raises:
            StreamerError: another JVM has it, or it cannot be written.
        """
        path = directory / JVM_LOCK_FILE
        try:
            path.touch(mode=0o600)
            self._file = java_packages(session.sparkContext).java.io.RandomAccessFile(
                str(path.absolute()), "rw"
            )
            is_free = self._file.getChannel().tryLock() is not None
        except (Py4JError, OSError) as e:
            raise StreamerError(f"the file {path} cannot be locked: {e}") from e
        if not is_free:
            self.close()
            raise StreamerError(f"another JVM works on the checkpoint {directory}; stop it")

    def close(self) -> None:
        """Release the lock; a JVM that has ended has released it."""
        with suppress(Py4JError, OSError):
            self._file.close()
