"""Journal of the decisions of windows, bounded in bytes and micro-batches, in the checkpoint.

Files in `decisions` in the checkpoint's directory on this machine: one is written, those before it
are packed. A line is a checksum and a record; the first line of a file names the checkpoint. A
record is written before its micro-batch is committed. So a crash may leave a record of a
micro-batch that is replayed, which decides the same and is not written again; or the beginning of a
line, which is cut off. Nothing of the stream depends on the journal: damage costs records alone.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Final

import orjson

from streamer.core.disk import sync_data

DIRECTORY_NAME: Final = "decisions"
MAX_RECORD_BYTES: Final = 64 << 10
"""A longer record is left out."""

SEGMENT_BYTES: Final = 1 << 20
MAX_SEGMENTS: Final = 16
"""Files that are kept, the newest among them; all but that are packed."""

_MAX_SEGMENT_RECORDS: Final = 10_000
_FORMAT: Final = 1
_OPEN_SUFFIX: Final = ".log"
_PACKED_SUFFIX: Final = ".logz"
_MAX_UNPACKED_BYTES: Final = SEGMENT_BYTES + 2 * MAX_RECORD_BYTES


class DecisionJournal:
    """Journal of one checkpoint, as its driver writes it."""

    def __init__(self, directory: Path, identity: str) -> None:
        """Open the journal, and cut off a line that a crash has left unfinished.

        Args:
            directory: of the checkpoint on this machine.
            identity: of the checkpoint; a journal of another one is deleted.

        Raises:
            OSError: it cannot be written.
        """
        self._directory = directory / DIRECTORY_NAME
        self._identity = identity
        self._file: FileIO | None = None
        self._size = self._records = 0
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._number = max(map(_number_of, _list_segments(self._directory)), default=-1)
        self.last_record: Mapping[str, Any] | None = self._find_last()

    @property
    def last_batch(self) -> int:
        """The micro-batch of the newest record; -1 without one."""
        return -1 if self.last_record is None else int(self.last_record["batch"])

    def append(self, record: Mapping[str, Any]) -> bool:
        """Write the record of a micro-batch; return whether it was written.

        The record of a micro-batch that the journal has is left out. One of an earlier micro-batch
        says that the checkpoint is an older copy: later records are deleted.

        Args:
            record: JSON values; `batch` is the number of the micro-batch.

        Raises:
            OSError: it cannot be written.
        """
        batch = int(record["batch"])
        if batch == self.last_batch:
            return False
        if batch < self.last_batch:
            self._cut_back(batch)
        body = orjson.dumps(record)
        if len(body) > MAX_RECORD_BYTES:
            return False
        self._write_line(body)
        self.last_record = record
        return True

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):
                sync_data(self._file.fileno())
            self._file.close()
            self._file = None

    def _find_last(self) -> Mapping[str, Any] | None:
        last = None
        for path in reversed(_list_segments(self._directory)):
            header, records, whole_bytes = _read_segment(path)
            if header.get("checkpoint") != self._identity:
                self._delete_all()
                return None
            if path.suffix == _OPEN_SUFFIX:
                # A crash between two steps of packing leaves both.
                if path.with_suffix(_PACKED_SUFFIX).exists():
                    path.unlink()
                elif _number_of(path) == self._number:
                    os.truncate(path, whole_bytes)
            if last is None and records:
                last = records[-1]
        return last

    def _delete_all(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._number = -1

    def _cut_back(self, batch: int) -> None:
        """Delete the records of a micro-batch and all later ones."""
        kept = [one for one in read_decisions(self._directory.parent) if one["batch"] < batch]
        self.close()
        self._delete_all()
        self.last_record = None
        for record in kept[-_MAX_SEGMENT_RECORDS:]:
            self._write_line(orjson.dumps(record))
            self.last_record = record

    def _write_line(self, body: bytes) -> None:
        line = _make_line(body)
        if self._file is not None and (
            self._size + len(line) > SEGMENT_BYTES or self._records >= _MAX_SEGMENT_RECORDS
        ):
            self._pack_segment()
        if self._file is None:
            self._open_segment()
        assert self._file is not None
        # One call: a crash leaves the beginning of a line, never two that are mixed.
        self._file.write(line)
        self._size += len(line)
        self._records += 1

    def _open_segment(self) -> None:
        """Go on with the newest file, unless it is packed or nothing is there."""
        path = self._path_of(max(self._number, 0))
        header, records, size = _read_segment(path)
        if not header:
            self._begin_segment()
            return
        self._file = _open_file(path)
        self._size, self._records = size, len(records)

    def _begin_segment(self) -> None:
        self._number += 1
        self._file = _open_file(self._path_of(self._number))
        header = {"format": _FORMAT, "checkpoint": self._identity}
        self._size, self._records = self._file.write(_make_line(orjson.dumps(header))), 0

    def _path_of(self, number: int) -> Path:
        return self._directory / f"{number:08}{_OPEN_SUFFIX}"

    def _pack_segment(self) -> None:
        """Pack the file that is full, and delete what is too old."""
        self.close()
        path = self._path_of(self._number)
        draft = path.with_suffix(".tmp")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(zlib.compress(path.read_bytes(), 1))
        draft.replace(path.with_suffix(_PACKED_SUFFIX))
        path.unlink()
        segments = _list_segments(self._directory)
        for old in segments[: max(len(segments) - MAX_SEGMENTS + 1, 0)]:
            old.unlink(missing_ok=True)
        self._begin_segment()


def _open_file(path: Path) -> FileIO:
    return FileIO(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def read_decisions(directory: Path) -> Iterator[dict[str, Any]]:
    """Give the records of a checkpoint, the oldest first; a program may be writing them.

    Args:
        directory: of the checkpoint on this machine. It may have no journal.
    """
    seen = -1
    for path in _list_segments(directory / DIRECTORY_NAME):
        _, records, _ = _read_segment(path)
        for record in records:
            if record["batch"] > seen:
                seen = record["batch"]
                yield record


def _list_segments(directory: Path) -> list[Path]:
    """Return the files, the oldest first; of a file that is being packed, the packed one first."""
    try:
        paths = [
            path
            for path in directory.iterdir()
            if path.suffix in (_OPEN_SUFFIX, _PACKED_SUFFIX) and path.stem.isdecimal()
        ]
    except FileNotFoundError:
        return []
    return sorted(paths, key=lambda path: (_number_of(path), path.suffix == _OPEN_SUFFIX))


def _number_of(path: Path) -> int:
    return int(path.stem)


def _make_line(body: bytes) -> bytes:
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _read_segment(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], int]:
    """Return the header, the records, and the bytes up to the first line that is not whole."""
    try:
        content = path.read_bytes()
        if path.suffix == _PACKED_SUFFIX:
            content = zlib.decompressobj().decompress(content, _MAX_UNPACKED_BYTES)
    except (OSError, zlib.error):
        return {}, [], 0
    records: list[dict[str, Any]] = []
    whole_bytes = 0
    for line in content.splitlines(keepends=True):
        record = _parse_line(line)
        if record is None:
            break
        records.append(record)
        whole_bytes += len(line)
    header = records.pop(0) if records and "checkpoint" in records[0] else {}
    return header, [one for one in records if isinstance(one.get("batch"), int)], whole_bytes


def _parse_line(line: bytes) -> dict[str, Any] | None:
    checksum, _, body = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(body):
        return None
    try:
        record = orjson.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
