"""`file`: "writes messages to files on disk based on a chosen codec".

"Messages can be written to different files by using interpolation functions in the path field."
Folders are made as needed. A failed message is written like any other, as in Benthos. A message
whose path cannot be found, cannot be that of a file or leaves `base`, is rejected: see
`sdk.output.rejection`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.files.message_path import (
    BASE,
    BASE_FIELD,
    PATH,
    SUCCESS_FILE,
    SUCCESS_FILE_FIELD,
    MessagePath,
    completes_window,
    path_problems,
)
from streamer.connectors.files.writable import check_writable_file
from streamer.connectors.formats.codec import CODEC, CODEC_FIELD, WriterCodec, read_codec
from streamer.connectors.locations.location_files import LocationFiles
from streamer.connectors.locations.output_path import location_path_problems
from streamer.connectors.locations.stores import location_packages
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.bulk import payloads_of
from streamer.core.locations import is_location
from streamer.core.message import Batch
from streamer.core.permissions import ALL, Permissions
from streamer.sdk.output.protocols import SendError
from streamer.sdk.output.rejection import make_invalid_rejection
from streamer.sdk.spec import Access, BuildContext, Field, Kind, ParsedFields, Spec


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    yield from path_problems(parsed)
    path = parsed[PATH]
    if not is_location(path):
        return
    yield from location_path_problems(parsed)
    if read_codec(parsed[CODEC]).append:
        if not path.endswith("/"):
            yield (
                CODEC,
                f"is {parsed[CODEC]}, which appends to a file, and an object cannot be appended "
                "to. End path with a slash, and each micro-batch writes an object into that "
                "directory; or set all-bytes for an object of each message",
            )
    elif path.endswith("/"):
        yield PATH, "ends with a slash; expected the URL of an object, one for each message"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "file",
    "Writes messages to files.",
    description=(
        "A path may be a URL of an object: see [Places](../../places.md). With the codec "
        "`all-bytes` each message is an object. With others `path` ends with a slash: each "
        "micro-batch writes one object into each directory that its messages name."
    ),
    fields=(
        Field(
            PATH,
            "string",
            "The file to write to. It is made, with its folders, when it does not exist.",
            access=Access.FILE,
            interpolated=True,
            check=lambda text: None if text else "is empty; expected the path of a file",
            examples=(
                *("/tmp/data.txt", '/tmp/${! json("document.id") }.json'),
                's3://events/dt=${! json("at").slice(0, 10) }/',
            ),
        ),
        BASE_FIELD,
        CODEC_FIELD,
        SUCCESS_FILE_FIELD,
    ),
    check=_problems,
    categories=("Local",),
    runs="driver",
    delivery="exactly once",
    requires=location_packages(PATH),
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
        self,
        path: MessagePath,
        codec: WriterCodec,
        success_file: str = "",
        permissions: Permissions = ALL,
    ) -> None:
        self._permissions = permissions
        self._path = path
        self._codec = codec
        self._static_path = path.static
        self.append = codec.append
        self.success_file = success_file

    @property
    def is_location(self) -> bool:
        """Whether objects are written, by URL."""
        return self._path.is_location

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
                path = self._path.of_message(message, ex)
            except MessageError as error:
                errors[index] = make_invalid_rejection(str(error))
                continue
            routed.append((path, message.raw))
            if self.success_file and completes_window(message):
                completed[posixpath.join(posixpath.dirname(path), self.success_file)] = b""
        if errors:
            raise SendError(next(iter(errors.values())), errors)
        return routed

    def probe(self) -> str:
        """Check that the file can be written, or the folder that all files are in."""
        if self.is_location:
            return LocationFiles(self._permissions).check(self._path.text)
        if self._static_path is not None:
            return f"{self._static_path} {check_writable_file(Path(self._static_path))}"
        folder = self._path.fixed_directory
        check_writable_file(Path(folder) / "x")
        return f"files in {folder}, by message"


def build(parsed: ParsedFields, context: BuildContext) -> FileOutput:
    """Compile the path and take the codec."""
    path = MessagePath(compile_interpolation(parsed[PATH]), parsed[BASE])
    codec = read_codec(parsed[CODEC])
    return FileOutput(path, codec, parsed[SUCCESS_FILE], parsed.permissions)
