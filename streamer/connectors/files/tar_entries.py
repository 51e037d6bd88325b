"""The entries of a tar archive that arrives piece by piece, as Go's `archive/tar` reads them.

Every entry is given, a directory or a link as well; those are empty.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from streamer.sdk.input.scanning import BLOCK_BYTES, ByteStream, ScanError


class TarEntry(NamedTuple):
    """An entry.

    Attributes:
        name: its path in the archive; that of a directory ends with a slash.
        content: its bytes.
        end: where the next one begins, in the stream that was read from.
    """

    name: str
    content: bytes
    end: int


class _FullReads:
    """A stream that gives as many bytes as are asked for, as `tarfile` wants it."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size and (block := self._stream.read(min(size, BLOCK_BYTES))):
            parts.append(block)
            size -= len(block)
        return b"".join(parts)


class _StrictTarInfo(tarfile.TarInfo):
    """A header. Behind the first one, `tarfile` takes what it cannot read for the end."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _StrictTarInfo:
        try:
            return super().fromtarfile(archive)
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as error:  # type: ignore[attr-defined]
            raise tarfile.ReadError(str(error)) from None
        except tarfile.EmptyHeaderError:  # type: ignore[attr-defined]
            # The end of the stream, where an archive should have two empty blocks.
            raise tarfile.EOFHeaderError("end of stream") from None  # type: ignore[attr-defined]


def read_entries(
    stream: ByteStream, take: Callable[[int], None] = lambda size: None
) -> Iterator[TarEntry]:
    """Read an archive, or what is left of one behind any entry; nothing is one without entries.

    Args:
        stream: what is read.
        take: called with the bytes of an entry before it is read; what it raises goes on.

    Raises:
        ScanError: it is no archive, or is cut off.
    """
    whole: Any = _FullReads(stream)
    try:
        # Nothing is read behind an entry before it is given.
        with tarfile.open(
            fileobj=whole, mode="r|", bufsize=tarfile.BLOCKSIZE, tarinfo=_StrictTarInfo
        ) as archive:
            for entry in archive:
                take(entry.size if entry.isreg() else 0)
                content = archive.extractfile(entry) if entry.isreg() else None
                raw = content.read() if content else b""
                # A directory's name keeps its slash in Go, and loses it in Python.
                name = entry.name + "/" if entry.isdir() else entry.name
                yield TarEntry(name, raw, archive.offset)
                archive.members.clear()  # type: ignore[attr-defined]
    except tarfile.TarError as error:
        cut = "unexpected end" in str(error) or "truncated" in str(error)
        raise ScanError("unexpected EOF" if cut else "archive/tar: invalid tar header") from None
