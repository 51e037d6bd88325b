"""The log's file: appended to, and rotated at 10 MiB when the config asks for it, as in Benthos."""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import time
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from streamer.core.errors import StreamerError

ROTATE_AT_BYTES: Final = 10 * 1024 * 1024
_SECONDS_PER_DAY: Final = 86_400


class LogFile:
    """A file that lines are appended to."""

    def __init__(self, path: str, rotate: bool = False, max_age_days: int = 0) -> None:
        """Open the file.

        Args:
            path: it is created when it does not exist; its folder must exist.
            rotate: whether a file of 10 MiB is compressed to `<path>.1.gz`, in the place of the one
                before, and a new one begun.
            max_age_days: with `rotate`, the age at which the compressed file is removed when the
                log is opened; 0 keeps it.

        Raises:
            StreamerError: the file cannot be opened.
        """
        compressed = Path(f"{path}.1.gz")
        if rotate and max_age_days > 0:
            _remove_old(compressed, max_age_days)
        try:
            self._handler = _Handler(
                path,
                maxBytes=ROTATE_AT_BYTES if rotate else 0,
                backupCount=1,
                encoding="utf-8",
                errors="backslashreplace",
            )
        except OSError as error:
            raise StreamerError(
                f"logger.file.path: cannot open {path}: {error.strerror}; name a file in a folder "
                "that exists and that you may write to"
            ) from None

    def write(self, line: str) -> None:
        """Append a line, its end included."""
        self._handler.emit(logging.makeLogRecord({"msg": line}))

    def close(self) -> None:
        """Close the file."""
        self._handler.close()


class _Handler(RotatingFileHandler):
    terminator = ""

    def rotation_filename(self, default_name: str) -> str:
        return f"{default_name}.gz"

    def rotate(self, source: str, dest: str) -> None:
        with open(source, "rb") as plain, gzip.open(dest, "wb") as packed:
            shutil.copyfileobj(plain, packed)
        os.remove(source)

    def handleError(self, record: logging.LogRecord) -> None:
        # A full disk must not stop the stream, nor fill the terminal with tracebacks.
        return


def _remove_old(rotated: Path, days: int) -> None:
    if rotated.exists() and time.time() - rotated.stat().st_mtime > days * _SECONDS_PER_DAY:
        rotated.unlink()
