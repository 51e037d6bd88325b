"""Files as one replayable source, read once from the first to the last, whatever cuts them.

Lines are cut by ranges of bytes, several pieces of a file in parallel (`series`); any other scanner
reads a file from its beginning, or from where it was (`scans`). The input ends with the last file.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from socket import gethostname
from typing import Any, NamedTuple

from streamer.errors import StreamerError
from streamer.message import Execution
from streamer.permissions import ALL, Permissions
from streamer.source.identity import Identity, identity
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


def missing_directory(pattern: str) -> str:
    """Return the directory of a glob that is not there, so that nothing can match; empty for none.

    That of a path without wildcards is not looked at: its absence is an error by itself.
    """
    if not glob.has_magic(pattern) or os.path.exists(pattern):
        return ""
    directory = os.path.dirname(pattern)
    while glob.has_magic(directory):
        directory = os.path.dirname(directory)
    return directory if directory and not os.path.isdir(directory) else ""


class Piece(NamedTuple):
    """A range of one file.

    Attributes:
        range: its bytes.
        shown: the file's name for the metadata.
        anew: whether the file is read from its beginning since it has replaced another one.
    """

    range: ByteRange
    shown: str
    anew: bool = False


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
        restarts: whether a file that has replaced the one that was read is read from its beginning;
            else that is an error.
    """

    paths: tuple[str, ...]
    scanner: Scanner
    delete_on_finish: bool = False
    files: tuple[str, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)
    permissions: Permissions = ALL
    restarts: bool = False

    def opened(self, room: Room) -> Files:
        """List the files, those of an earlier start first, and remember them."""
        source = self.resume(room.known() or [])
        for pattern in self.paths:
            if directory := missing_directory(pattern):
                text = "A glob finds nothing, since its directory is not there"
                room.log("WARN", text, {"glob": pattern, "directory": directory})
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
        """Go on from `start` until the limit, at the end of a message.

        Raises:
            StreamerError: the file that was read in part is another one now.
        """
        anew = self._is_replaced(start)
        if anew:
            if not self.restarts:
                raise self._replaced(start)
            start = {"file": start["file"], "pos": 0}
        latest = self._latest(start, limit)
        offset = self._identified(latest.offset)
        if anew:
            offset["anew"] = start["file"]
        return latest._replace(offset=offset)

    def _latest(self, start: Offset, limit: Limit) -> Latest:
        series = self._series
        if series is None:
            stop, messages, at_end = self._scans.reach(_stop(start), limit)
            return Latest(_offset(stop), messages, ended=at_end, more=not at_end)
        spot, messages, at_end = series.reach(Spot(start["file"], start["pos"]), limit)
        offset = {"file": spot.number, "pos": spot.position}
        return Latest(offset, messages, ended=at_end, more=not at_end)

    def _identified(self, offset: Offset) -> Offset:
        """Return an offset with what was seen of the file that it is in."""
        number, size = offset["file"], offset["pos"]
        if not size or number >= len(self.files):
            return offset
        with suppress(OSError):
            if self._series is None:
                # A place in a file that is unpacked is none in its bytes.
                size = os.stat(self.files[number]).st_size
            offset["of"] = list(identity(self.files[number], size))
        return offset

    def _is_replaced(self, offset: Offset) -> bool:
        """Tell whether the file that an offset is in is another one than that which was read.

        Offsets of version 0.1 do not say what was read.
        """
        number = offset["file"]
        seen = offset.get("of")
        if not seen or number >= len(self.files):
            return False
        return not Identity(*seen).holds(self.files[number])

    def _replaced(self, offset: Offset) -> StreamerError:
        path = self.files[offset["file"]]
        return StreamerError(
            f"input file: {path} was replaced or cut short since it was read up to position "
            f"{offset['pos']:,}: it has {self._length(offset['file']):,} bytes, which do not begin "
            "with what was read. Put the former file back to read the rest of it, or set "
            "on_replaced: restart to read this one from its beginning"
        )

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
        """Cut what lies between two offsets into pieces of about equal size.

        Raises:
            StreamerError: a file that was to be read again is another one now.
        """
        if end.get("anew") == start["file"]:
            start = {"file": start["file"], "pos": 0}
            pieces = self._split(start, end, parts)
            if pieces and _path(pieces[0]) == self.files[start["file"]]:
                first = pieces[0]
                marked = isinstance(first, ScannedPiece)
                pieces[0] = replace(first, anew=True) if marked else first._replace(anew=True)
        else:
            pieces = self._split(start, end, parts)
        ends = [end] if start["file"] == end["file"] else [start, end]
        for gone in filter(self._is_replaced, ends):
            if not self.restarts:
                raise self._replaced(gone)
            # What was planned can never be read again. The next look begins the new file.
            pieces = [piece for piece in pieces if _path(piece) != self.files[gone["file"]]]
        return pieces

    def _split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
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
        if piece.anew:
            text = "A file that was read in part was replaced; the new one is read from the start"
            ex.log("WARN", text, {"source": piece.shown})
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
            # Another file of its name has not been read.
            done = done and not self._is_replaced(end)
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
        for pattern in self.paths:
            if directory := missing_directory(pattern):
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


def _path(piece: Piece | ScannedPiece) -> str:
    return piece.path if isinstance(piece, ScannedPiece) else piece.range.path


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
