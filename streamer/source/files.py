"""Files as one replayable source, read once from the first to the last, whatever cuts them.

Lines are cut by ranges of bytes, several pieces of a file in parallel (`series`); any other scanner
reads a file from its beginning, or from where it was (`scans`). The input ends with the last file.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from socket import gethostname
from typing import Any, NamedTuple

from streamer.errors import StreamerError
from streamer.message import Execution
from streamer.permissions import ALL, Permissions
from streamer.source.opening import Room
from streamer.source.ranges import ByteRange, blocks
from streamer.source.replayable import Chunk, Extent, Latest, Limit, Offset, Raws
from streamer.source.scanning import Mark, Scanner, Splitting, expansion_of
from streamer.source.scans import ScannedPiece, Scans, Stop, read_scanned
from streamer.source.series import Series, Spot
from streamer.timestamps import format_rfc3339


def expand(paths: Iterable[str]) -> dict[str, str]:
    """Return the files that paths and globs name, each once, in order.

    Returns:
        By absolute path, the path as it was written or matched.

    Raises:
        StreamerError: a path that is no glob does not exist, or is a directory.
    """
    found: dict[str, str] = {}
    for pattern in paths:
        if glob.has_magic(pattern) and not os.path.exists(pattern):
            # As Go's, a star matches names that begin with a dot too.
            found_now = glob.glob(pattern, recursive=True, include_hidden=True)
            matches = [match for match in sorted(found_now) if os.path.isfile(match)]
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
            found.setdefault(os.path.abspath(match), match)
    return found


class Piece(NamedTuple):
    """A range of one file, and the file's name for the metadata."""

    range: ByteRange
    shown: str


@dataclass(frozen=True)
class Files:
    """Files as one replayable source; an offset is a file's number and a position in it.

    Attributes:
        paths: as the config has them; globs among them.
        scanner: cuts bytes into messages.
        delete_on_finish: whether files are deleted when the checkpoint has them.
        files: absolute paths. A list from an earlier start comes first, unchanged (`resume`).
        shown: the paths as they were written or matched, by absolute path.
        permissions: whether files may be read.
    """

    paths: tuple[str, ...]
    scanner: Scanner
    delete_on_finish: bool = False
    files: tuple[str, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)
    permissions: Permissions = ALL

    def opened(self, room: Room) -> Files:
        """List the files, those of an earlier start first, and remember them."""
        source = self.resume(room.known() or [])
        room.remember(list(source.files))
        return source

    def resume(self, known: list[str]) -> Files:
        """Return this input with its files listed: those of an earlier start first, as they were.

        Offsets name files by number, so the order of an earlier start is kept; files that match
        now and did not then follow.
        """
        # A file of an earlier start may have been deleted since; it is no error that it is gone.
        listed = set(known)
        paths = map(self.permissions.file, self.paths)
        shown = expand(path for path in paths if os.path.abspath(path) not in listed)
        files = (*known, *(path for path in shown if path not in listed))
        shown |= {os.path.abspath(path): path for path in self.paths}
        return replace(self, files=files, shown=shown)

    def initial(self) -> Offset:
        """Return the beginning of the first file."""
        return {"file": 0, "pos": 0}

    @property
    def _series(self) -> Series | None:
        """The files as lines, or None when something else cuts them."""
        if not isinstance(self.scanner, Splitting):
            return None
        delimiter = self.scanner.delimiter
        return Series(0, len(self.files) - 1, self.files.__getitem__, self._length, delimiter)

    @property
    def _scans(self) -> Scans:
        return Scans(len(self.files), self.files.__getitem__, self._size, self.scanner)

    def _size(self, number: int) -> int | None:
        try:
            return os.stat(self.files[number]).st_size
        except FileNotFoundError:
            return None

    def _length(self, number: int) -> int:
        """Return a file's size in bytes; a file that has gone is at its end."""
        return self._size(number) or 0

    def latest(self, start: Offset, now: int, limit: Limit) -> Latest:
        """Go on from `start` until the limit, at the end of a message."""
        series = self._series
        if series is None:
            stop, messages, at_end = self._scans.reach(_stop(start), limit)
            return Latest(_offset(stop), messages, ended=at_end, more=not at_end)
        spot, messages, at_end = series.reach(Spot(start["file"], start["pos"]), limit)
        offset = {"file": spot.number, "pos": spot.position}
        return Latest(offset, messages, ended=at_end, more=not at_end)

    @cached_property
    def _sizes(self) -> list[int]:
        """The files' sizes when they were looked at first: one that is done with may be deleted."""
        return [self._length(number) for number in range(len(self.files))]

    def extent(self, start: Offset, end: Offset) -> Extent:
        """Return where the bytes between two offsets are; see `Measurable`."""
        sizes = self._sizes
        # The position in a file that is unpacked counts what comes out.
        expansion = 1 if self._series is not None else expansion_of(self.scanner)

        def before(offset: Offset) -> int:
            number = offset["file"]
            within = min(offset["pos"] // expansion, sizes[number]) if number < len(sizes) else 0
            return sum(sizes[:number]) + within

        done = before(start)
        one = self.files[0] if len(self.files) == 1 else ""
        name = os.path.basename(one) if one else f"{len(self.files):,} files"
        return Extent(name, done, max(before(end) - done, 0), sum(sizes))

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        """Cut what lies between two offsets into pieces of about equal size."""
        series = self._series
        if series is None:
            return list(self._scans.pieces(_stop(start), _stop(end), parts, self.shown))
        spots = (Spot(start["file"], start["pos"]), Spot(end["file"], end["pos"]))
        return [
            Piece(byte_range, self.shown.get(byte_range.path, byte_range.path))
            for byte_range in series.pieces(*spots, parts)
        ]

    def read(self, piece: Piece | ScannedPiece, ex: Execution) -> Iterator[Chunk]:
        """Read the messages of one piece.

        Raises:
            StreamerError: the file is not where this is read.
        """
        self.permissions.file(piece.path if isinstance(piece, ScannedPiece) else piece.range.path)
        try:
            yield from self._read(piece, ex)
        except FileNotFoundError as e:
            raise StreamerError(
                f"there is no file {e.filename} any more, or not on {gethostname()}: on a cluster "
                "workers read files themselves, and all need them at the same path"
            ) from e

    def _read(self, piece: Piece | ScannedPiece, ex: Execution) -> Iterator[Chunk]:
        if isinstance(piece, ScannedPiece):
            yield from read_scanned(self.scanner, piece, _metadata(piece.path, piece.shown), ex)
            return
        assert isinstance(self.scanner, Splitting)
        meta = _metadata(piece.range.path, piece.shown)
        for block in blocks(piece.range, self.scanner.delimiter):
            raws = self.scanner.scan(block, ex, piece.shown)
            if ex.reading is not None:
                ex.reading.begin_block(len(block), len(raws))
            yield Raws(raws, meta)

    def partition(self, piece: Piece | ScannedPiece) -> str:
        """A file is a partition."""
        return piece.shown

    def committed(self, end: Offset) -> None:
        """Delete the files before the position, when the config asks for it."""
        if self.delete_on_finish:
            number = end["file"]
            lines_done = self._series is not None and number < len(self.files)
            done = lines_done and end["pos"] >= self._length(number)
            self._delete(self.files[: number + done])

    def finished(self) -> None:
        """Delete the files that are left, when the config asks for it."""
        if self.delete_on_finish:
            self._delete(self.files)

    def probe(self) -> str:
        """Open every file; see `Probing`."""
        files = expand(map(self.permissions.file, self.paths))
        if not files:
            raise StreamerError(f"no file matches {', '.join(self.paths)}")
        for path in files:
            with open(path, "rb"):
                pass
        size = sum(os.stat(path).st_size for path in files)
        return f"{len(files):,} file{'' if len(files) == 1 else 's'}, {size:,} bytes"

    def _delete(self, files: Iterable[str]) -> None:
        for path in files:
            if os.path.exists(path):
                os.unlink(path)


def _stop(offset: Offset) -> Stop:
    mark = Mark(offset["pos"], offset.get("n", 0), offset.get("state"))
    return Stop(offset["file"], mark)


def _offset(stop: Stop) -> Offset:
    mark = stop.mark
    return {"file": stop.number, "pos": mark.position, "n": mark.number, "state": mark.state}


def _metadata(path: str, shown: str) -> dict[str, Any]:
    modified = int(os.stat(path).st_mtime)
    return {
        "path": shown,
        "mod_time_unix": modified,
        "mod_time": format_rfc3339(modified * 1_000_000_000),
    }
