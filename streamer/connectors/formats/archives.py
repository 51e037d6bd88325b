"""Archives in memory: how Benthos puts many payloads into one, and how it takes them out."""

from __future__ import annotations

import io
import tarfile
import time
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from typing import Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.limits import check_decompressed_size, check_messages
from streamer.connectors.files.tar_entries import read_entries
from streamer.sdk.input.scanning import ScanError

Item = tuple[str, bytes]
"""A path in an archive, and what stands there."""

_LENGTH_BYTES: Final = 4
_READ_BYTES: Final = 1 << 13
_FILE_MODE: Final = 0o666
_TAR_BLOCK_BYTES: Final = tarfile.BLOCKSIZE
_MALFORMED_TEXT: Final = "serialised message bytes were in unexpected format"


def write_tar(items: Iterable[Item], now: int) -> bytes:
    """Return a tar archive, ended as Go ends it; `now` is the files' time, Unix ns."""
    parts: list[bytes] = []
    for name, content in items:
        head = tarfile.TarInfo(name)
        head.size, head.mode, head.mtime = len(content), _FILE_MODE, now // 1_000_000_000
        parts += (
            head.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"),
            content,
            bytes(-len(content) % _TAR_BLOCK_BYTES),
        )
    parts.append(bytes(2 * _TAR_BLOCK_BYTES))
    return b"".join(parts)


def read_tar(raw: bytes) -> list[Item]:
    """Return the entries of a tar archive.

    Raises:
        QueryError: it is none, or is beyond the limits of one message.
    """
    count = size = 0

    def take(more: int) -> None:
        nonlocal count, size
        count += 1
        size += more
        check_messages(count)
        check_decompressed_size(size)

    try:
        return [(name, content) for name, content, _ in read_entries(io.BytesIO(raw), take)]
    except ScanError as error:
        raise QueryError(str(error)) from None


def write_zip(items: Iterable[Item], now: int) -> bytes:
    """Return a zip file; `now` is the files' time, Unix ns."""
    made = io.BytesIO()
    when = time.gmtime(now // 1_000_000_000)
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in items:
            head = zipfile.ZipInfo(name, (max(when.tm_year, 1980), *when[1:6]))
            head.compress_type = zipfile.ZIP_DEFLATED
            head.external_attr = _FILE_MODE << 16
            archive.writestr(head, content)
    return made.getvalue()


def read_zip(raw: bytes) -> list[Item]:
    """Return the entries of a zip file.

    Raises:
        QueryError: it is none, is packed or locked in a way that Go does not read, or is beyond
            the limits of one message.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            listed = archive.infolist()
            check_messages(len(listed))
            # No more of an entry is read than is said here.
            check_decompressed_size(sum(entry.file_size for entry in listed))
            return [(entry.filename, _read_zip_entry(archive, entry)) for entry in listed]
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise QueryError("zip: not a valid zip file") from None
    except (NotImplementedError, RuntimeError) as error:
        raise QueryError(f"zip: unsupported compression algorithm ({error})") from None


def _read_zip_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return what an entry holds, read in small pieces.

    What is packed otherwise than by deflate is unpacked as far as it has been read.
    """
    with archive.open(entry) as file:
        return b"".join(iter(lambda: file.read(_READ_BYTES), b""))


def write_binary(contents: Sequence[bytes]) -> bytes:
    """Return Benthos's own format: the number of payloads, then each with its length, big endian.

    Source: Benthos `internal/message/message.go`.
    """
    parts = [len(contents).to_bytes(_LENGTH_BYTES, "big")]
    for content in contents:
        parts += (len(content).to_bytes(_LENGTH_BYTES, "big"), content)
    return b"".join(parts)


def read_binary(raw: bytes) -> list[bytes]:
    """Return the payloads that `write_binary` has put together; what follows is not looked at.

    Raises:
        QueryError: the bytes are something else.
    """
    count = int.from_bytes(raw[:_LENGTH_BYTES], "big")
    if len(raw) < _LENGTH_BYTES or count >= len(raw):
        raise QueryError(_MALFORMED_TEXT)
    check_messages(count)
    payloads: list[bytes] = []
    at = _LENGTH_BYTES
    for _ in range(count):
        begin = at + _LENGTH_BYTES
        end = begin + int.from_bytes(raw[at:begin], "big")
        if begin > len(raw) or end > len(raw):
            raise QueryError(_MALFORMED_TEXT)
        payloads.append(raw[begin:end])
        at = end
    return payloads
