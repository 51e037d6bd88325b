"""Checks of the paths of files that messages give: whether they can be written at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from streamer.core.errors import StreamerError
from streamer.engine.report.result_frame import Frame

_UNUSABLE_ERRNOS: Final = frozenset(
    {
        *(errno.EINVAL, errno.EISDIR, errno.EILSEQ, errno.ELOOP, errno.ENAMETOOLONG),
        *(errno.ENOENT, errno.ENOTDIR),
    }
)
"""What the system says of a path that can be no file; all else, such as a full disk, may pass."""

_MAX_SHOWN_CHARACTERS: Final = 200


class RefusedRoutesError(StreamerError):
    """Frames whose routes can be no files: another try finds the same.

    Attributes:
        refused: the frames, each with the reason.
    """

    def __init__(self, refused: Sequence[tuple[Frame, str]]) -> None:
        """Take the frames."""
        super().__init__(refused[0][1])
        self.refused = refused


def draft_path(path: str) -> str:
    """Return where a file is written before it replaces another."""
    return f"{path}.streamer-tmp"


def explain_unusable(path: str, append: bool) -> str:
    """Return why a path can be no file, after making its folder; empty when nothing says so.

    A file that is not there is made: what stops that is known only by trying. It is empty until
    something is written to it.

    Args:
        path: the path.
        append: whether it is appended to; else it is replaced.
    """
    tried = path if append else draft_path(path)
    refusal = f"cannot write to the file {path[:_MAX_SHOWN_CHARACTERS]!r}"
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(tried, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o666))
        if not append and os.path.isdir(path):
            os.unlink(tried)
            return f"{refusal}: {os.strerror(errno.EISDIR)}"
    except ValueError as error:
        return f"{refusal}: {error}"
    except OSError as error:
        if error.errno in _UNUSABLE_ERRNOS:
            return f"cannot write to the file {path[:_MAX_SHOWN_CHARACTERS]!r}: {error.strerror}"
    return ""


def explain_unusable_directory(path: str) -> str:
    """Return why a path can be no directory, after making it; empty when nothing says so."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except ValueError as error:
        return f"cannot write to the directory {path[:_MAX_SHOWN_CHARACTERS]!r}: {error}"
    except OSError as error:
        if error.errno in _UNUSABLE_ERRNOS or isinstance(error, FileExistsError):
            shown = path[:_MAX_SHOWN_CHARACTERS]
            return f"cannot write to the directory {shown!r}: {error.strerror}"
    return ""
