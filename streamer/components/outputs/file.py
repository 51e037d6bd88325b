"""`file`: "writes messages to files on disk based on a chosen codec".

"Messages can be written to different files by using interpolation functions in the path field."
Folders are made as needed. A failed message is written like any other, as in Benthos. A message
whose path cannot be found, cannot be that of a file or leaves `base`, is rejected: see
`sdk.output.rejection`.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.connectors.files.writable import check_writable_file
from streamer.connectors.formats.codec import CODEC, CODEC_FIELD, WriterCodec, read_codec
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.bulk import payloads_of
from streamer.core.message import Batch
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import make_invalid_rejection
from streamer.sdk.spec import Access, BuildContext, Field, Kind, ParsedFields, Spec

PATH: Final = "path"
BASE: Final = "base"
SUCCESS_FILE: Final = "success_file"

_WINDOW_EMIT: Final = "window_emit"
_CLOSE_REASONS: Final = frozenset({"final", "idle", "flush"})
"""Values of the metadata `window_emit` of messages whose window has closed."""

_NAME_BYTES: Final = 255
_PATH_BYTES: Final = 4096
_MAX_PATH_CHARS: Final = 200


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    base, path = parsed[BASE], parsed[PATH]
    if base and "${!" not in path and not is_below(base, path):
        yield PATH, f"is {path!r}, which is not below base, {base!r}"
    name = parsed[SUCCESS_FILE]
    if name and (name in (".", "..") or "/" in name or path_problem(name)):
        yield SUCCESS_FILE, f"is {name!r}; expected the name of a file, such as _SUCCESS"
    if name and "${!" not in path:
        text = "needs a path that is another one for each window, such as one with "
        yield SUCCESS_FILE, f"{text}${{! @window_start_timestamp }} in it"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "file",
    "Writes messages to files.",
    fields=(
        Field(
            PATH,
            "string",
            "The file to write to. It is made, with its folders, when it does not exist.",
            access=Access.FILE,
            interpolated=True,
            check=lambda text: None if text else "is empty; expected the path of a file",
            examples=("/tmp/data.txt", '/tmp/${! json("document.id") }.json'),
        ),
        Field(
            BASE,
            "string",
            "A directory that no path may leave: where `path` holds something of a message, `../` "
            "or a path from the root would lead anywhere. A message whose path leaves it is "
            "rejected. Paths do not become relative to it. Not in Benthos.",
            access=Access.FILE,
            default="",
            advanced=True,
            examples=("./out",),
        ),
        CODEC_FIELD,
        Field(
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
        ),
    ),
    check=_problems,
    categories=("Local",),
    runs="driver",
    delivery="exactly once",
)


class FileOutput:
    """Encodes batches for the driver, which writes them to the files.

    Attributes:
        append: whether bytes are appended to their file; otherwise (`all-bytes`) each item of
            `encode` replaces the file's content.
        success_file: the name of files that say that a directory is complete; empty for none. They
            are items without bytes.
    """

    def __init__(
        self, path: Interpolation, codec: WriterCodec, base: str = "", success_file: str = ""
    ) -> None:
        self._path = path
        self._codec = codec
        self._base = base
        self._static_path = None if path.static is None else clean_path(path.static)
        self.append = codec.append
        self.success_file = success_file

    @property
    def is_dynamic(self) -> bool:
        """Whether the file depends on the message."""
        return self._static_path is None

    @property
    def ignores_batches(self) -> bool:
        """Whether what is written is the same however messages are cut into batches."""
        return self._static_path is not None and self.append

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return file paths and what is written to them, in the order of the messages.

        Neighbours that go to the same file are joined, unless each one replaces it.
        """
        if self._static_path is not None and self.append:
            return (
                [(self._static_path, self._codec.encode_all(payloads_of(batch)))] if batch else []
            )
        completed: dict[str, bytes] = {}
        routed = self._encode_by_path(batch, ex, completed)
        if self.append:
            routed = [
                (path, self._codec.encode_all([raw for _, raw in items]))
                for path, items in groupby(routed, key=itemgetter(0))
            ]
        return [*routed, *completed.items()]

    def encode_each(self, batch: Batch, ex: Execution) -> tuple[str, list[bytes]]:
        """Return the one file path, and what is written for each message."""
        assert self._static_path is not None
        return self._static_path, list(map(self._codec.encode_one, payloads_of(batch)))

    def encode_texts(self, texts: list[bytes]) -> tuple[str, list[bytes]]:
        """Return the same for messages of these bytes."""
        assert self._static_path is not None
        return self._static_path, list(map(self._codec.encode_one, texts))

    def _encode_by_path(
        self, batch: Batch, ex: Execution, completed: dict[str, bytes]
    ) -> list[tuple[str, bytes]]:
        """Return paths and payloads; add the success files of directories that are complete."""
        routed: list[tuple[str, bytes]] = []
        errors: dict[int, str] = {}
        for index, message in enumerate(batch):
            try:
                # Benthos's file output sees one message at a time, not the batch.
                path = self._path_of([message], ex)
            except MessageError as error:
                errors[index] = make_invalid_rejection(f"path interpolation error: {error}")
                continue
            if self._static_path is None and (problem := path_problem(path)):
                errors[index] = make_invalid_rejection(
                    f"cannot write to the file {path[:_MAX_PATH_CHARS]!r}: {problem}"
                )
                continue
            routed.append((path, message.raw))
            if self.success_file and message.meta.get(_WINDOW_EMIT) in _CLOSE_REASONS:
                completed[posixpath.join(posixpath.dirname(path), self.success_file)] = b""
        if errors:
            raise SendError(next(iter(errors.values())), errors)
        return routed

    def _path_of(self, batch: Batch, ex: Execution) -> str:
        path = clean_path(self._path.text_of(batch, 0, ex))
        if self._base and not is_below(self._base, path):
            raise MessageError(f"{path!r} is not below the base {self._base!r}")
        return path

    def probe(self) -> str:
        """Check that the file can be written, or the folder that all files are in."""
        if self._static_path is not None:
            return f"{self._static_path} {check_writable_file(Path(self._static_path))}"
        # What stands before the first interpolation holds for every message.
        folder = self._path.text.partition("${!")[0].rpartition("/")[0] or "."
        check_writable_file(Path(folder) / "x")
        return f"files in {folder}, by message"


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
    whole = os.path.abspath(path)
    above = os.path.join(os.path.abspath(base), "")
    return whole.startswith(above) and len(whole) > len(above)


def build(parsed: ParsedFields, context: BuildContext) -> FileOutput:
    """Compile the path and take the codec."""
    path = compile_interpolation(parsed[PATH])
    return FileOutput(path, read_codec(parsed[CODEC]), parsed[BASE], parsed[SUCCESS_FILE])
