"""`file`: "writes messages to files on disk based on a chosen codec".

"Messages can be written to different files by using interpolation functions in the path field."
Folders are made as needed. A failed message is written like any other, as in Benthos. A message
whose path cannot be found, or leaves `base`, can never be written: Benthos sends it round for
ever; here it is logged as an error, counted in `output_dropped{reason="path"}` and left out.
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
from streamer.documents import payloads
from streamer.errors import MessageError
from streamer.failure import Origin
from streamer.formats.codec import CODEC, CODEC_FIELD, Codec, read_codec
from streamer.message import Batch, Execution
from streamer.source.places import writable_place
from streamer.spec import Access, BuildContext, Field, Kind, Parsed, Spec

PATH: Final = "path"
DROPPED_COUNTER: Final = "output_dropped"
SENT_COUNTER: Final = "output_sent"
BASE: Final = "base"


def _problems(parsed: Parsed) -> Iterator[tuple[str, str]]:
    base, path = parsed[BASE], parsed[PATH]
    if base and "${!" not in path and not is_below(base, path):
        yield PATH, f"is {path!r}, which is not below base, {base!r}"


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
            "or a path from the root would lead anywhere. A message whose path leaves it is not "
            "written. Paths do not become relative to it. Not in Benthos.",
            access=Access.FILE,
            default="",
            advanced=True,
            examples=("./out",),
        ),
        CODEC_FIELD,
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
    """

    def __init__(self, path: Interpolation, codec: Codec, origin: Origin, base: str = "") -> None:
        self._path = path
        self._codec = codec
        self._origin = origin
        self._base = base
        self._only = None if path.static is None else clean_path(path.static)
        self.append = codec.append

    @property
    def ignores_batches(self) -> bool:
        """Whether what is written is the same however messages are cut into batches."""
        return self._only is not None and self.append

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return file paths and what is written to them, in the order of the messages.

        Neighbours that go to the same file are joined, unless each one replaces it.
        """
        if self._only is not None and self.append:
            return [(self._only, self._codec.join(payloads(batch)))] if batch else []
        routed = self._routed(batch, ex)
        if not self.append:
            return routed
        return [
            (path, self._codec.join([raw for _, raw in items]))
            for path, items in groupby(routed, key=itemgetter(0))
        ]

    def each(self, batch: Batch, ex: Execution) -> tuple[str, list[bytes]]:
        """Return the one file path, and what is written for each message."""
        assert self._only is not None
        return self._only, list(map(self._codec.one, payloads(batch)))

    def _routed(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        routed: list[tuple[str, bytes]] = []
        for message in batch:
            try:
                # Benthos's file output sees one message at a time, not the batch.
                path = self._of([message], ex)
            except MessageError as error:
                self._origin.log(ex, "ERROR", f"path interpolation error: {error}")
                ex.count(DROPPED_COUNTER, 1, reason="path")
                # It has been counted with its batch.
                ex.count(SENT_COUNTER, -1, **self._origin.fields)
                continue
            routed.append((path, message.raw))
        return routed

    def _of(self, batch: Batch, ex: Execution) -> str:
        path = clean_path(self._path.text_of(batch, 0, ex))
        if self._base and not is_below(self._base, path):
            raise MessageError(f"{path!r} is not below the base {self._base!r}")
        return path

    def probe(self) -> str:
        """Look whether the file can be written, or the folder that all files are in."""
        if self._only is not None:
            return f"{self._only} {writable_place(Path(self._only))}"
        # What stands before the first interpolation holds for every message.
        folder = self._path.text.partition("${!")[0].rpartition("/")[0] or "."
        writable_place(Path(folder) / "x")
        return f"files in {folder}, by message"


def clean_path(path: str) -> str:
    """Return the shortest equivalent of a path, as Go's `filepath.Clean` does."""
    cleaned = posixpath.normpath(path) if path else "."
    # POSIX lets two leading slashes mean something of their own, and Python keeps them.
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def is_below(base: str, path: str) -> bool:
    """Tell whether a path leads to something below a directory; links are not followed."""
    whole = os.path.abspath(path)
    above = os.path.join(os.path.abspath(base), "")
    return whole.startswith(above) and len(whole) > len(above)


def build(parsed: Parsed, context: BuildContext) -> FileOutput:
    """Compile the path and take the codec."""
    path = compile_interpolation(parsed[PATH])
    return FileOutput(path, read_codec(parsed[CODEC]), Origin(context.component), parsed[BASE])
