"""Paths that messages give: where a file or a directory is that a message is written to."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from typing import Final

from streamer.bloblang import Interpolation
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.locations import is_location
from streamer.core.message import Message
from streamer.sdk.spec import Access, Field, ParsedFields

PATH: Final = "path"
BASE: Final = "base"
SUCCESS_FILE: Final = "success_file"

_WINDOW_EMIT: Final = "window_emit"
_CLOSE_REASONS: Final = frozenset({"final", "idle", "flush"})
"""Values of the metadata `window_emit` of messages whose window has closed."""

_NAME_BYTES: Final = 255
_PATH_BYTES: Final = 4096
_MAX_PATH_CHARS: Final = 200

BASE_FIELD: Final = Field(
    BASE,
    "string",
    "A directory that no path may leave: where `path` holds something of a message, `../` "
    "or a path from the root would lead anywhere. A message whose path leaves it is "
    "rejected. Paths do not become relative to it. Not in Benthos.",
    access=Access.FILE,
    default="",
    advanced=True,
    examples=("./out",),
)

SUCCESS_FILE_FIELD: Final = Field(
    SUCCESS_FILE,
    "string",
    "The name of an empty file that says that a directory is complete. It is made in the "
    "directory of a message of a window that has closed (metadata `window_emit` is "
    "`final`, `idle` or `flush`), once all that its micro-batch writes there is on the "
    "disk. Let `path` have a directory for each window, and all keys close together: a "
    "window by event time without `idle_timeout`. Flink calls it a success file. Not in "
    "Benthos.",
    default="",
    advanced=True,
    examples=("_SUCCESS",),
    access=Access.FILE,
)


def path_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Give what is wrong with the fields of a path together."""
    base, path = parsed[BASE], parsed[PATH]
    if base and "${!" not in path and not is_below(base, path):
        yield PATH, f"is {path!r}, which is not below base, {base!r}"
    name = parsed[SUCCESS_FILE]
    if name and (name in (".", "..") or "/" in name or path_problem(name)):
        yield SUCCESS_FILE, f"is {name!r}; expected the name of a file, such as _SUCCESS"
    if name and "${!" not in path:
        text = "needs a path that is another one for each window, such as one with "
        yield SUCCESS_FILE, f"{text}${{! @window_start_timestamp }} in it"


def completes_window(message: Message) -> bool:
    """Return whether a message is of a window that has closed."""
    return message.meta.get(_WINDOW_EMIT) in _CLOSE_REASONS


class MessagePath:
    """A path with interpolation in it.

    Attributes:
        static: the path, where it is the same for all messages; else None.
        is_location: whether it is the URL of an object: the config says so, and no message.
    """

    def __init__(self, path: Interpolation, base: str = "", *, is_directory: bool = False) -> None:
        """Take the path.

        Args:
            path: its text.
            base: a directory that it may not leave; empty for none.
            is_directory: whether it is that of a directory, and not of a file.
        """
        self._path = path
        self._base = base
        self._noun = "directory" if is_directory else "file"
        self.is_location = is_location(path.text)
        self.static = path.static
        if self.static is not None and not self.is_location:
            self.static = clean_path(self.static)

    @property
    def text(self) -> str:
        """The path as the config has it."""
        return self._path.text

    @property
    def fixed_directory(self) -> str:
        """The directory that all paths begin with."""
        # What stands before the first interpolation holds for every message.
        return self._path.text.partition("${!")[0].rpartition("/")[0] or "."

    def of_message(self, message: Message, ex: Execution) -> str:
        """Return the path of a message.

        Raises:
            MessageError: it has none, or one that can be no file's, or one that leaves the base.
        """
        try:
            # Benthos's file output sees one message at a time, not the batch.
            path = self._path.text_of([message], 0, ex)
            if not self.is_location:
                path = clean_path(path)
            if self._base and not is_below(self._base, path):
                raise MessageError(f"{path!r} is not below the base {self._base!r}")
        except MessageError as error:
            raise MessageError(f"path interpolation error: {error}") from None
        if self.static is None and not self.is_location and (problem := path_problem(path)):
            raise MessageError(
                f"cannot write to the {self._noun} {path[:_MAX_PATH_CHARS]!r}: {problem}"
            )
        return path


def path_problem(path: str) -> str:
    """Return why a path cannot be that of a file, whatever there is on the disk; empty if it can.

    The limits are Linux's; where a file system has others, it says so when the file is written.
    """
    try:
        parts = os.fsencode(path).split(b"/")
    except UnicodeEncodeError:
        return "it has a character that no file name can have"
    if any(b"\0" in part for part in parts):
        return "it has a NUL in it"
    if parts[-1] in (b"", b".", b".."):
        return "it is that of a folder"
    if max(map(len, parts)) > _NAME_BYTES:
        return f"a name in it is longer than {_NAME_BYTES} bytes"
    if sum(map(len, parts)) + len(parts) > _PATH_BYTES:
        return f"it is longer than {_PATH_BYTES} bytes"
    return ""


def clean_path(path: str) -> str:
    """Return the shortest equivalent of a path, as Go's `filepath.Clean` does."""
    cleaned = posixpath.normpath(path) if path else "."
    # POSIX lets two leading slashes mean something of their own, and Python keeps them.
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def is_below(base: str, path: str) -> bool:
    """Return whether a path leads to something below a directory; links are not followed."""
    if is_location(base):
        above = f"{base.rstrip('/')}/"
        return path.startswith(above) and len(path) > len(above)
    whole = os.path.abspath(path)
    above = os.path.join(os.path.abspath(base), "")
    return whole.startswith(above) and len(whole) > len(above)
