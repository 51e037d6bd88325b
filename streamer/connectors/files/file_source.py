"""Files as one replayable source, read once from the first to the last, whatever cuts them.

Lines are cut by ranges of bytes, several pieces of a file in parallel (`line_files`); any other
scanner reads a file from its beginning, or from where it was (`scanned_files`). The input ends with
the last file.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from socket import gethostname
from typing import Any, NamedTuple

from streamer.connectors.files.file_identity import FileIdentity, read_identity
from streamer.connectors.files.line_files import BytePosition, ByteRange, LineFiles, read_blocks
from streamer.connectors.files.scanned_files import (
    FilePosition,
    ScannedFiles,
    ScannedPiece,
    read_scanned,
)
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.permissions import ALL, Permissions
from streamer.core.timestamps import format_rfc3339
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.replayable import (
    Chunk,
    FileExtent,
    LatestOffset,
    Limit,
    LineMessages,
    Offset,
    RawMessages,
)
from streamer.sdk.input.scanning import ScanMark, Scanner, SplittableScanner, expansion_of


def expand_paths(paths: Iterable[str]) -> dict[str, str]:
    """Return the files that paths and globs name, each once, in order.

    Returns:
        By absolute path, the path as it was written or matched.

    Raises:
        StreamerError: a path that is no glob does not exist, or is a directory.
    """
    files: dict[str, str] = {}
    for pattern in paths:
        if glob.has_magic(pattern) and not os.path.exists(pattern):
            # As Go's, a star matches names that begin with a dot too.
            matched = glob.glob(pattern, recursive=True, include_hidden=True)
            matches = [match for match in sorted(matched) if os.path.isfile(match)]
        elif not os.path.exists(pattern):
            raise StreamerError(
                f"input file: there is no file {pattern!r}; "
                "check the path (it is relative to the directory the program was started in)"
            )
        elif os.path.isdir(pattern):
            raise StreamerError(
                f"input file: {pattern!r} is a directory; name its files with a glob: "
                f"{os.path.join(pattern, '*')}"
            )
        else:
            matches = [pattern]
        for match in matches:
            files.setdefault(os.path.abspath(match), match)
    return files


def find_missing_directory(pattern: str) -> str:
    """Return the directory of a glob that is not there, so that nothing can match; empty for none.

    That of a path without wildcards is not looked at: its absence is an error by itself.
    """
    if not glob.has_magic(pattern) or os.path.exists(pattern):
        return ""
    directory = os.path.dirname(pattern)
    while glob.has_magic(directory):
        directory = os.path.dirname(directory)
    return directory if directory and not os.path.isdir(directory) else ""


class FilePiece(NamedTuple):
    """A range of one file.

    Attributes:
        range: its bytes.
        display_path: the file's name for the metadata.
        is_reread: whether the file is read from its beginning since it has replaced another one.
    """

    range: ByteRange
    display_path: str
    is_reread: bool = False


@dataclass(frozen=True)
class FileSource:
    """Files as one replayable source; an offset is a file's number and a position in it.

    Attributes:
        paths: as the config has them; globs among them.
        scanner: cuts bytes into messages.
        delete_on_finish: whether files are deleted when the checkpoint has them.
        files: absolute paths. A list from an earlier start comes first, unchanged (`resume`).
        display_paths: the paths as they were written or matched, by absolute path.
        permissions: whether files may be read.
        restarts: whether a file that has replaced the one that was read is read from its beginning;
            else that is an error.
    """

    paths: tuple[str, ...]
    scanner: Scanner
    delete_on_finish: bool = False
    files: tuple[str, ...] = ()
    display_paths: Mapping[str, str] = field(default_factory=dict)
    permissions: Permissions = ALL
    restarts: bool = False

    def open(self, context: InputContext) -> FileSource:
        """List the files, those of an earlier start first, and remember them."""
        source = self.continue_from(context.load_state() or [])
        for pattern in self.paths:
            if directory := find_missing_directory(pattern):
                text = "A glob finds nothing, since its directory is not there"
                context.log("WARN", text, {"glob": pattern, "directory": directory})
        context.save_state(list(source.files))
        return source

    def continue_from(self, known: list[str]) -> FileSource:
        """Return this input with its files listed: those of an earlier start first, as they were.

        Offsets name files by number, so the order of an earlier start is kept; files that match
        now and did not then follow.
        """
        # A file of an earlier start may have been deleted since; it is no error that it is gone.
        listed = set(known)
        paths = map(self.permissions.file, self.paths)
        shown = expand_paths(path for path in paths if os.path.abspath(path) not in listed)
        files = (*known, *(path for path in shown if path not in listed))
        shown |= {os.path.abspath(path): path for path in self.paths}
        return replace(self, files=files, display_paths=shown)

    def initial_offset(self) -> Offset:
        """Return the beginning of the first file."""
        return {"file": 0, "pos": 0}

    @property
    def _series(self) -> LineFiles | None:
        """The files as lines, or None when something else cuts them."""
        if not isinstance(self.scanner, SplittableScanner):
            return None
        delimiter = self.scanner.delimiter
        return LineFiles(
            0, len(self.files) - 1, self.files.__getitem__, self._file_length, delimiter
        )

    @property
    def _scans(self) -> ScannedFiles:
        return ScannedFiles(len(self.files), self.files.__getitem__, self._file_size, self.scanner)

    def _file_size(self, number: int) -> int | None:
        try:
            return os.stat(self.files[number]).st_size
        except FileNotFoundError:
            return None

    def _file_length(self, number: int) -> int:
        """Return a file's size in bytes; a file that has gone is at its end."""
        return self._file_size(number) or 0

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Go on from `start` until the limit, at the end of a message.

        Raises:
            StreamerError: the file that was read in part is another one now.
        """
        is_replaced = self._is_replaced(start)
        if is_replaced:
            if not self.restarts:
                raise self._replaced_error(start)
            start = {"file": start["file"], "pos": 0}
        latest = self._latest_in_files(start, limit)
        offset = self._with_identity(latest.offset)
        if is_replaced:
            offset["anew"] = start["file"]
        return latest._replace(offset=offset)

    def watch(self, wake: Callable[[], None]) -> None:
        """Do nothing: the files are there, and end."""

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return no time: the files are there, and end."""
        return None

    def _latest_in_files(self, start: Offset, limit: Limit) -> LatestOffset:
        series = self._series
        if series is None:
            stop, messages, at_end = self._scans.find_batch_end(_to_stop(start), limit)
            return LatestOffset(_to_offset(stop), messages, is_ended=at_end, has_more=not at_end)
        spot, messages, at_end = series.find_batch_end(
            BytePosition(start["file"], start["pos"]), limit
        )
        offset = {"file": spot.number, "pos": spot.position}
        return LatestOffset(offset, messages, is_ended=at_end, has_more=not at_end)

    def _with_identity(self, offset: Offset) -> Offset:
        """Return an offset with what was seen of the file that it is in."""
        number, size = offset["file"], offset["pos"]
        if not size or number >= len(self.files):
            return offset
        with suppress(OSError):
            if self._series is None:
                # A place in a file that is unpacked is none in its bytes.
                size = os.stat(self.files[number]).st_size
            offset["of"] = list(read_identity(self.files[number], size))
        return offset

    def _is_replaced(self, offset: Offset) -> bool:
        """Return whether the file that an offset is in is another one than that which was read.

        Offsets of version 0.1 do not say what was read.
        """
        number = offset["file"]
        identity = offset.get("of")
        if not identity or number >= len(self.files):
            return False
        return not FileIdentity(*identity).matches(self.files[number])

    def _replaced_error(self, offset: Offset) -> StreamerError:
        path = self.files[offset["file"]]
        return StreamerError(
            f"input file: {path} was replaced or cut short since it was read up to position "
            f"{offset['pos']:,}: it has {self._file_length(offset['file']):,} bytes, which do not "
            "begin with what was read. Restore the former file to read the rest of it, or set "
            "on_replaced: restart to read this one from its beginning"
        )

    @cached_property
    def _sizes(self) -> list[int]:
        """The files' sizes when they were looked at first: one that is done with may be deleted."""
        return [self._file_length(number) for number in range(len(self.files))]

    def extent_between(self, start: Offset, end: Offset) -> FileExtent:
        """Return where the bytes between two offsets are; see `MeasurableSource`."""
        sizes = self._sizes
        # The position in a file that is unpacked counts what comes out.
        expansion = 1 if self._series is not None else expansion_of(self.scanner)

        def bytes_before(offset: Offset) -> int:
            number = offset["file"]
            within = min(offset["pos"] // expansion, sizes[number]) if number < len(sizes) else 0
            return sum(sizes[:number]) + within

        done = bytes_before(start)
        one = self.files[0] if len(self.files) == 1 else ""
        name = os.path.basename(one) if one else f"{len(self.files):,} files"
        return FileExtent(name, done, max(bytes_before(end) - done, 0), sum(sizes))

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        """Cut what lies between two offsets into pieces of about equal size.

        Raises:
            StreamerError: a file that was to be read again is another one now.
        """
        if end.get("anew") == start["file"]:
            start = {"file": start["file"], "pos": 0}
            pieces = self._split_files(start, end, parts)
            if pieces and _path_of(pieces[0]) == self.files[start["file"]]:
                first = pieces[0]
                marked = isinstance(first, ScannedPiece)
                pieces[0] = (
                    replace(first, is_reread=True) if marked else first._replace(is_reread=True)
                )
        else:
            pieces = self._split_files(start, end, parts)
        ends = [end] if start["file"] == end["file"] else [start, end]
        for replaced in filter(self._is_replaced, ends):
            if not self.restarts:
                raise self._replaced_error(replaced)
            # What was planned can never be read again. The next look begins the new file.
            pieces = [piece for piece in pieces if _path_of(piece) != self.files[replaced["file"]]]
        return pieces

    def _split_files(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        series = self._series
        if series is None:
            return list(
                self._scans.pieces(_to_stop(start), _to_stop(end), parts, self.display_paths)
            )
        spots = (BytePosition(start["file"], start["pos"]), BytePosition(end["file"], end["pos"]))
        return [
            FilePiece(byte_range, self.display_paths.get(byte_range.path, byte_range.path))
            for byte_range in series.split(*spots, parts)
        ]

    def read(self, piece: FilePiece | ScannedPiece, ex: Execution) -> Iterator[Chunk]:
        """Read the messages of one piece.

        Raises:
            StreamerError: the file is not where this is read.
        """
        self.permissions.file(piece.path if isinstance(piece, ScannedPiece) else piece.range.path)
        if piece.is_reread:
            text = "A file that was read in part was replaced; the new one is read from the start"
            ex.log("WARN", text, {"source": piece.display_path})
        try:
            yield from self._read_piece(piece, ex)
        except FileNotFoundError as e:
            raise StreamerError(
                f"there is no file {e.filename} any more, or not on {gethostname()}: on a cluster "
                "workers read files themselves, and all need them at the same path"
            ) from e

    def _read_piece(self, piece: FilePiece | ScannedPiece, ex: Execution) -> Iterator[Chunk]:
        if isinstance(piece, ScannedPiece):
            yield from read_scanned(
                self.scanner, piece, _metadata(piece.path, piece.display_path), ex
            )
            return
        assert isinstance(self.scanner, SplittableScanner)
        meta = _metadata(piece.range.path, piece.display_path)
        for block in read_blocks(piece.range, self.scanner.delimiter):
            lines = self.scanner.find_lines(block) if ex.reads_columns else None
            chunk = (
                RawMessages(self.scanner.scan_range(block, ex, piece.display_path), meta)
                if lines is None
                else LineMessages(lines, meta)
            )
            if ex.read_counter is not None:
                ex.read_counter.begin_block(len(block), len(chunk))
            yield chunk

    def partition_of(self, piece: FilePiece | ScannedPiece) -> str:
        """A file is a partition."""
        return piece.display_path

    def on_committed(self, end: Offset) -> None:
        """Delete the files before the position, when the config asks for it."""
        if self.delete_on_finish:
            number = end["file"]
            lines_done = self._series is not None and number < len(self.files)
            done = lines_done and end["pos"] >= self._file_length(number)
            # Another file of its name has not been read.
            done = done and not self._is_replaced(end)
            self._delete(self.files[: number + done])

    def on_finished(self) -> None:
        """Delete the files that are left, when the config asks for it."""
        if self.delete_on_finish:
            self._delete(self.files)

    def probe(self) -> str:
        """Open every file; see `SupportsProbe`."""
        files = expand_paths(map(self.permissions.file, self.paths))
        if not files:
            raise StreamerError(f"no file matches {', '.join(self.paths)}")
        for pattern in self.paths:
            if directory := find_missing_directory(pattern):
                raise StreamerError(f"{pattern} finds nothing: there is no directory {directory}")
        for path in files:
            with open(path, "rb"):
                pass
        size = sum(os.stat(path).st_size for path in files)
        return f"{len(files):,} file{'' if len(files) == 1 else 's'}, {size:,} bytes"

    def _delete(self, files: Iterable[str]) -> None:
        for path in files:
            if os.path.exists(path):
                os.unlink(path)


def _path_of(piece: FilePiece | ScannedPiece) -> str:
    return piece.path if isinstance(piece, ScannedPiece) else piece.range.path


def _to_stop(offset: Offset) -> FilePosition:
    mark = ScanMark(offset["pos"], offset.get("n", 0), offset.get("state"))
    return FilePosition(offset["file"], mark)


def _to_offset(stop: FilePosition) -> Offset:
    mark = stop.mark
    return {"file": stop.number, "pos": mark.position, "n": mark.number, "state": mark.state}


def _metadata(path: str, display_path: str) -> dict[str, Any]:
    modified = int(os.stat(path).st_mtime)
    return {
        "path": display_path,
        "mod_time_unix": modified,
        "mod_time": format_rfc3339(modified * 1_000_000_000),
    }
