"""`tar`: a message of each file in a tar archive.

It will "consume a tar archive file by file", and adds the metadata `tar_name`. As in Benthos every
entry is a message: a directory, too, which is empty.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from streamer.message import Message
from streamer.source.scanning import (
    BLOCK,
    MOST,
    START,
    ByteStream,
    Cut,
    Mark,
    Opened,
    ScanError,
    skip,
)
from streamer.spec import BuildContext, Field, Kind, Spec

NAME: Final = "tar_name"

SPEC: Final = Spec(
    Kind.SCANNER,
    "tar",
    "Makes a message of each entry of a tar archive.",
    description="Adds the metadata `tar_name`, the entry's name, to each message.",
    config=Field("", "object", "It has no fields.", default={}),
)


class _Full:
    """A stream that gives as many bytes as are asked for, as `tarfile` wants it."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        held: list[bytes] = []
        while size and (block := self._stream.read(min(size, BLOCK))):
            held.append(block)
            size -= len(block)
        return b"".join(held)


class _Entry(tarfile.TarInfo):
    """A header. Behind the first one, `tarfile` takes what it cannot read for the end."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _Entry:
        try:
            return super().fromtarfile(archive)
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as error:  # type: ignore[attr-defined]
            raise tarfile.ReadError(str(error)) from None
        except tarfile.EmptyHeaderError:  # type: ignore[attr-defined]
            # The end of the stream, where an archive should have two empty blocks.
            raise tarfile.EOFHeaderError("end of stream") from None  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class TarScanner:
    """Reads entry by entry."""

    def cuts(self, source: Opened, since: Mark = START, most: int = MOST) -> Iterator[Cut]:
        """Cut a stream; see `Scanner`. An entry is a cut of its own."""
        skip(source.stream, since.position)
        number = since.number
        stream: Any = _Full(source.stream)
        try:
            # Nothing is read behind an entry before it is given.
            with tarfile.open(
                fileobj=stream, mode="r|", bufsize=tarfile.BLOCKSIZE, tarinfo=_Entry
            ) as archive:
                for entry in archive:
                    content = archive.extractfile(entry) if entry.isreg() else None
                    raw = content.read() if content else b""
                    number += 1
                    message = Message(raw, {**source.meta, NAME: _name(entry)})
                    yield Cut([[message]], Mark(since.position + archive.offset, number))
                    archive.members.clear()  # type: ignore[attr-defined]
        except tarfile.TarError as error:
            raise ScanError(f"{source.name}: archive/tar: invalid tar header ({error})") from None


def _name(entry: tarfile.TarInfo) -> str:
    # A directory's name keeps its slash in Go, and loses it in Python.
    return entry.name + "/" if entry.isdir() else entry.name


def build(parsed: object, context: BuildContext) -> TarScanner:
    """There is nothing to take."""
    return TarScanner()
