"""The `stdin` input: what is piped into the program, kept in a durable spool until it is safe."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamer.errors import StreamerError
from streamer.landing.cutting import pour
from streamer.landing.damage import Damage, damaged
from streamer.landing.landed import Landed
from streamer.landing.lander import Lander, StoppedError
from streamer.landing.pointer import NAME, Position, write_read
from streamer.landing.store import Store
from streamer.message import NO_META, Execution
from streamer.source.opening import Room
from streamer.source.ranges import ByteRange, blocks, overlaps_itself
from streamer.source.replayable import Chunk, Latest, Limit, Offset, Raws, Replayable
from streamer.source.scanning import ScanError, Splitting
from streamer.source.series import Series, Spot
from streamer.source.spool import (
    DURABLE,
    Durable,
    SpoolWriter,
    forget,
    pump,
    read_durable,
    segment_path,
    segment_size,
)
from streamer.source.sums import bad_parts
from streamer.spec import BuildContext, Kind, Parsed, Spec
from streamer.spec.scanned import SCANNED_FIELDS, build_scanner

SPEC = Spec(
    kind=Kind.INPUT,
    name="stdin",
    summary="Reads what is piped into the program and cuts it into messages.",
    description=(
        "A pipe cannot be read twice, so its bytes go to a spool on disk (in the checkpoint "
        "directory) before anything else; they are deleted when the checkpoint has them. The "
        "input ends with the pipe."
    ),
    fields=SCANNED_FIELDS,
)


@dataclass(frozen=True)
class _Piped:
    """The standard input as a stream of bytes."""

    room: Room

    def read(self, size: int, /) -> bytes:
        """Return what there is; nothing at the end."""
        return self.room.read_stdin(size)


@dataclass(frozen=True)
class StdinInput:
    """A spool as a replayable source; an offset is a segment and a position in it.

    Attributes:
        scanner: cuts bytes into messages.
        directory: the spool's directory; set by `opened`.
    """

    scanner: Any
    directory: Path = Path()

    def opened(self, room: Room) -> Replayable:
        """Begin to move what is piped in to the spool, and return what reads that.

        Raises:
            StreamerError: the spool is laid out as by another master.
        """
        room.claim("the standard input")
        # Bytes land as they come where every part of them can be cut by itself, by workers that see
        # the spool.
        splits = isinstance(self.scanner, Splitting) and not overlaps_itself(self.scanner.delimiter)
        lands = not splits or not room.local
        if (room.directory / (DURABLE if lands else NAME)).exists():
            raise StreamerError(
                f"the spool {room.directory} holds what was piped in while spark.master, or the "
                "scanner, was another: on a cluster it is laid out in another way; start once more "
                "as before, and let what was piped in come out"
            )
        if lands:
            return self._landed(room)
        limit = room.spool_limit
        size = segment_size(limit)
        spool = SpoolWriter(room.directory, self.scanner.delimiter, size)

        def trouble(text: str) -> None:
            room.log("ERROR", text, {})

        room.start("stdin", lambda: pump(room.read_stdin, spool, room.directory, trouble, limit))
        return self.resume(room.directory)

    def _landed(self, room: Room) -> Landed:
        """Land messages: what a scanner cuts from the beginning on, or what a cluster is sent."""
        store = Store(room.directory, room.spool_limit)
        lander = Lander(room, store)
        ex = Execution(time.time_ns, room.log, room.count)

        def run() -> None:
            try:
                pour(_Piped(room), self.scanner, "stdin", ex, lander.put)
            except StoppedError:
                return
            except ScanError as e:
                room.log("ERROR", f"Failed to read message: {e}", {})
            store.close()

        room.start("stdin", run)
        return Landed(room.directory, self.scanner, "stdin", inside=not room.local)

    def resume(self, directory: Path) -> StdinInput:
        """Return this input, reading the spool in a directory."""
        return StdinInput(self.scanner, directory)

    def initial(self) -> Offset:
        """Return the beginning of the first segment."""
        return {"segment": 1, "pos": 0}

    def _series(self, durable: Durable) -> Series:
        def length(number: int) -> int:
            if number == durable.segment:
                return durable.size
            path = segment_path(self.directory, number)
            return path.stat().st_size if path.exists() else 0

        def path(number: int) -> str:
            return str(segment_path(self.directory, number))

        return Series(1, durable.segment, path, length, self.scanner.delimiter)

    def latest(self, start: Offset, now: int, limit: Limit) -> Latest:
        """Go on from `start` through what is safe on disk, until the limit."""
        durable = read_durable(self.directory)
        spot = Spot(start["segment"], start["pos"])
        reach = self._series(durable).reach(spot, limit)
        offset = {"segment": reach.spot.number, "pos": reach.spot.position}
        ended = reach.at_end and durable.closed
        return Latest(offset, reach.messages, ended, more=not reach.at_end)

    def split(self, start: Offset, end: Offset, parts: int) -> list[ByteRange]:
        """Cut the bytes between two offsets into pieces.

        Raises:
            StreamerError: some of them are not what was piped in.
        """
        ends = ((start["segment"], start["pos"]), (end["segment"], end["pos"]))
        # Here, and not by the workers, which read parts of what was appended at once.
        if bad := list(bad_parts(self.directory, *ends, self.scanner.delimiter)):
            raise damaged([Damage.of_part(self.directory, one) for one in bad])
        spots = (Spot(start["segment"], start["pos"]), Spot(end["segment"], end["pos"]))
        # What lies before `end` is safe, so nothing newer than it need be known.
        return self._series(Durable(spots[1].number, spots[1].position)).pieces(*spots, parts)

    def read(self, piece: ByteRange, ex: Execution) -> Iterator[Chunk]:
        """Read the lines of one piece."""
        for block in blocks(piece, self.scanner.delimiter):
            yield Raws(self.scanner.scan(block, ex, "stdin"), NO_META)

    def partition(self, piece: ByteRange) -> str:
        """There is but one."""
        return ""

    def committed(self, end: Offset) -> None:
        """Delete the segments before the position."""
        with suppress(OSError):
            write_read(self.directory, Position(end["segment"], end["pos"]))
        forget(self.directory, end["segment"])

    def finished(self) -> None:
        """The next start begins with an empty spool."""


def build(parsed: Parsed, context: BuildContext) -> StdinInput:
    """Make the input; its spool is made by `opened`, when the stream starts."""
    return StdinInput(build_scanner(parsed, context))
