"""The `file` input: lines of files, read once from the first to the last, as Benthos does.

Every micro-batch takes the next bytes of the files in the order of `paths`, cut at line ends, and
the workers read them themselves, several pieces of a file in parallel. The input ends with the
last file.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from streamer.errors import StreamerError
from streamer.message import Execution
from streamer.scanners.lines import LineScanner
from streamer.source.opening import Room
from streamer.source.ranges import ByteRange, blocks
from streamer.source.replayable import Chunk, Latest, Limit, Offset, Raws
from streamer.source.series import Series, Spot
from streamer.spec import BuildContext, Field, Kind, Parsed, Spec
from streamer.spec.scanned import FIELD_SCANNER, SCANNED_FIELDS
from streamer.timestamps import format_rfc3339

FIELD_PATHS = "paths"
FIELD_DELETE_ON_FINISH = "delete_on_finish"


def _check(parsed: Parsed) -> Iterator[tuple[str, str]]:
    if not parsed[FIELD_PATHS]:
        yield FIELD_PATHS, "is an empty list; expected at least one path or glob"


SPEC = Spec(
    kind=Kind.INPUT,
    name="file",
    summary="Reads files once, in the order of the paths, and cuts them into messages.",
    description=(
        "Adds the metadata `path`, `mod_time_unix` (seconds) and `mod_time` (RFC 3339) to each "
        "message. Positions are kept in the checkpoint: a restart goes on where it was."
    ),
    fields=(
        Field(
            FIELD_PATHS,
            "string",
            "Paths of files, or globs such as `./data/*.jsonl` (`**` goes into directories).",
            shape="array",
            examples=(("./data/*.jsonl",),),
        ),
        Field(
            FIELD_DELETE_ON_FINISH,
            "bool",
            "Delete a file once all of it is safe in the checkpoint.",
            default=False,
            advanced=True,
        ),
        *SCANNED_FIELDS,
    ),
    check=_check,
)


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
class FileInput:
    """Files as one replayable source; an offset is a file's number and a position in it.

    Attributes:
        files: absolute paths. A list from an earlier start comes first, unchanged (`resume`).
        scanner: cuts bytes into messages.
        delete_on_finish: whether files are deleted when the checkpoint has them.
    """

    paths: tuple[str, ...]
    scanner: LineScanner
    delete_on_finish: bool = False
    files: tuple[str, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)

    def opened(self, room: Room) -> FileInput:
        """List the files, those of an earlier start first, and remember them."""
        source = self.resume(room.known() or [])
        room.remember(list(source.files))
        return source

    def resume(self, known: list[str]) -> FileInput:
        """Return this input with its files listed: those of an earlier start first, as they were.

        Offsets name files by number, so the order of an earlier start is kept; files that match
        now and did not then follow.
        """
        # A file of an earlier start may have been deleted since; it is no error that it is gone.
        shown = expand(path for path in self.paths if os.path.abspath(path) not in known)
        files = (*known, *(path for path in shown if path not in known))
        shown |= {os.path.abspath(path): path for path in self.paths}
        return replace(self, files=files, shown=shown)

    def initial(self) -> Offset:
        """Return the beginning of the first file."""
        return {"file": 0, "pos": 0}

    @property
    def _series(self) -> Series:
        delimiter = self.scanner.delimiter
        return Series(0, len(self.files) - 1, self.files.__getitem__, self._length, delimiter)

    def _length(self, number: int) -> int:
        """Return a file's size in bytes; a file that has gone is at its end."""
        try:
            return os.stat(self.files[number]).st_size
        except FileNotFoundError:
            return 0

    def latest(self, start: Offset, now: int, limit: Limit) -> Latest:
        """Go on from `start` until the limit, at the end of a line."""
        spot, messages, at_end = self._series.reach(Spot(start["file"], start["pos"]), limit)
        offset = {"file": spot.number, "pos": spot.position}
        return Latest(offset, messages, ended=at_end, more=not at_end)

    def split(self, start: Offset, end: Offset, parts: int) -> list[Piece]:
        """Cut the bytes between two offsets into pieces of about equal size."""
        spots = (Spot(start["file"], start["pos"]), Spot(end["file"], end["pos"]))
        return [
            Piece(byte_range, self.shown.get(byte_range.path, byte_range.path))
            for byte_range in self._series.pieces(*spots, parts)
        ]

    def read(self, piece: Piece, ex: Execution) -> Iterator[Chunk]:
        """Read the lines of one piece."""
        meta = _metadata(piece)
        for block in blocks(piece.range, self.scanner.delimiter):
            yield Raws(self.scanner.scan(block, ex, piece.shown), meta)

    def partition(self, piece: Piece) -> str:
        """A file is a partition."""
        return piece.shown

    def committed(self, end: Offset) -> None:
        """Delete the files before the position, when the config asks for it."""
        number = end["file"]
        done = number < len(self.files) and end["pos"] >= self._length(number)
        self._delete(self.files[: number + done])

    def finished(self) -> None:
        """Delete the files that are left, when the config asks for it."""
        self._delete(self.files)

    def probe(self) -> str:
        """Open every file; see `Probing`."""
        files = expand(self.paths)
        if not files:
            raise StreamerError(f"no file matches {', '.join(self.paths)}")
        for path in files:
            with open(path, "rb"):
                pass
        size = sum(os.stat(path).st_size for path in files)
        return f"{len(files):,} file{'' if len(files) == 1 else 's'}, {size:,} bytes"

    def _delete(self, files: Iterable[str]) -> None:
        if self.delete_on_finish:
            for path in files:
                if os.path.exists(path):
                    os.unlink(path)


def _metadata(piece: Piece) -> dict[str, Any]:
    modified = int(os.stat(piece.range.path).st_mtime)
    return {
        "path": piece.shown,
        "mod_time_unix": modified,
        "mod_time": format_rfc3339(modified * 1_000_000_000),
    }


def build(parsed: Parsed, context: BuildContext) -> FileInput:
    """Make the input; its files are listed by `opened`, when the stream starts."""
    scanner = context.build(parsed[FIELD_SCANNER])
    return FileInput(tuple(parsed[FIELD_PATHS]), scanner, parsed[FIELD_DELETE_ON_FINISH])
