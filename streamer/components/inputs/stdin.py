"""The `stdin` input: what is piped into the program, kept in a durable spool until it is safe."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamer.connectors.files.line_files import (
    BytePosition,
    ByteRange,
    LineFiles,
    is_self_overlapping,
    read_blocks,
)
from streamer.connectors.spool.byte_spool import (
    DURABLE_FILE,
    ByteSpoolWriter,
    DurablePosition,
    delete_segments,
    pump_into_spool,
    read_durable,
    segment_path,
    segment_size,
)
from streamer.connectors.spool.checksums import find_damaged
from streamer.connectors.spool.damage import Damage, damage_error
from streamer.connectors.spool.pointer import SAFE_FILE, Position, write_read_position
from streamer.connectors.spool.scan_bytes import scan_into_spool
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import SpoolWriter, StreamStoppedError
from streamer.connectors.spool.store import SpoolStore
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import NO_META
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.replayable import (
    Chunk,
    LatestOffset,
    Limit,
    Offset,
    RawMessages,
    ReplayableSource,
)
from streamer.sdk.input.scanning import ScanError, SplittableScanner
from streamer.sdk.spec import BuildContext, Kind, ParsedFields, Spec
from streamer.sdk.spec.scanner_fields import SCANNER_FIELDS, build_scanner

SPEC = Spec(
    kind=Kind.INPUT,
    name="stdin",
    summary="Reads standard input and divides it into messages.",
    description=(
        "A pipe cannot be read twice, so its bytes go to a spool on disk (in the checkpoint "
        "directory) before anything else; they are deleted when the checkpoint has them. The "
        "input ends with the pipe."
    ),
    fields=SCANNER_FIELDS,
)


@dataclass(frozen=True)
class _StdinStream:
    """The standard input as a stream of bytes."""

    context: InputContext

    def read(self, size: int, /) -> bytes:
        """Return what there is; nothing at the end."""
        return self.context.read_stdin(size)


@dataclass(frozen=True)
class StdinInput:
    """A spool as a replayable source; an offset is a segment and a position in it.

    Attributes:
        scanner: cuts bytes into messages.
        directory: the spool's directory; set by `opened`.
    """

    scanner: Any
    directory: Path = Path()

    def open(self, context: InputContext) -> ReplayableSource:
        """Begin to move what is piped in to the spool, and return what reads that.

        Raises:
            StreamerError: the spool is laid out as by another master.
        """
        context.claim("the standard input")
        # Bytes are spooled as they come where each part can be cut by itself, by workers that
        # see the spool.
        splits = isinstance(self.scanner, SplittableScanner) and not is_self_overlapping(
            self.scanner.delimiter
        )
        uses_spool = not splits or not context.is_local
        if (context.directory / (DURABLE_FILE if uses_spool else SAFE_FILE)).exists():
            raise StreamerError(
                f"the spool {context.directory} holds what was piped in while spark.master, or the "
                "scanner, was another: on a cluster it is laid out in another way; start once more "
                "as before, and let what was piped in come out"
            )
        if uses_spool:
            return self._open_spool(context)
        limit = context.spool_limit
        size = segment_size(limit)
        spool = ByteSpoolWriter(
            context.directory, self.scanner.delimiter, size, context.wake_planner
        )

        def trouble(text: str) -> None:
            context.log("ERROR", text, {})

        context.start(
            "stdin",
            lambda: pump_into_spool(context.read_stdin, spool, context.directory, trouble, limit),
        )
        return self.continue_from(context.directory)

    def _open_spool(self, context: InputContext) -> SpoolSource:
        """Land messages: what a scanner cuts from the beginning on, or what a cluster is sent."""
        store = SpoolStore.for_input(context)
        writer = SpoolWriter(context, store)
        ex = Execution(time.time_ns, context.log, context.count)

        def run() -> None:
            try:
                scan_into_spool(_StdinStream(context), self.scanner, "stdin", ex, writer.put)
            except StreamStoppedError:
                return
            except ScanError as e:
                context.log("ERROR", f"Failed to read message: {e}", {})
            store.close()

        context.start("stdin", run)
        return SpoolSource.for_input(context, self.scanner, "stdin")

    def continue_from(self, directory: Path) -> StdinInput:
        """Return this input, reading the spool in a directory."""
        return StdinInput(self.scanner, directory)

    def initial_offset(self) -> Offset:
        """Return the beginning of the first segment."""
        return {"segment": 1, "pos": 0}

    def _line_files(self, durable: DurablePosition) -> LineFiles:
        def length(number: int) -> int:
            if number == durable.segment:
                return durable.size
            path = segment_path(self.directory, number)
            return path.stat().st_size if path.exists() else 0

        def path(number: int) -> str:
            return str(segment_path(self.directory, number))

        return LineFiles(1, durable.segment, path, length, self.scanner.delimiter)

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Go on from `start` through what is safe on disk, until the limit."""
        durable = read_durable(self.directory)
        spot = BytePosition(start["segment"], start["pos"])
        reach = self._line_files(durable).find_batch_end(spot, limit)
        offset = {"segment": reach.position.number, "pos": reach.position.position}
        ended = reach.is_at_end and durable.is_closed
        return LatestOffset(offset, reach.messages, ended, has_more=not reach.is_at_end)

    def watch(self, wake: Callable[[], None]) -> None:
        """Do nothing: who writes the spool wakes the planner."""

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return no time: who writes the spool wakes the planner."""
        return None

    def split(self, start: Offset, end: Offset, parts: int) -> list[ByteRange]:
        """Cut the bytes between two offsets into pieces.

        Raises:
            StreamerError: some of them are not what was piped in.
        """
        ends = ((start["segment"], start["pos"]), (end["segment"], end["pos"]))
        # Here, and not by the workers, which read parts of what was appended at once.
        if bad := list(find_damaged(self.directory, *ends, self.scanner.delimiter)):
            raise damage_error([Damage.of_part(self.directory, one) for one in bad])
        spots = (
            BytePosition(start["segment"], start["pos"]),
            BytePosition(end["segment"], end["pos"]),
        )
        # What lies before `end` is safe, so nothing newer than it need be known.
        return self._line_files(DurablePosition(spots[1].number, spots[1].position)).split(
            *spots, parts
        )

    def read(self, piece: ByteRange, ex: Execution) -> Iterator[Chunk]:
        """Read the lines of one piece."""
        for block in read_blocks(piece, self.scanner.delimiter):
            yield RawMessages(self.scanner.scan_range(block, ex, "stdin"), NO_META)

    def partition_of(self, piece: ByteRange) -> str:
        """There is but one."""
        return ""

    def on_committed(self, end: Offset) -> None:
        """Delete the segments before the position."""
        with suppress(OSError):
            write_read_position(self.directory, Position(end["segment"], end["pos"]))
        delete_segments(self.directory, end["segment"])

    def on_finished(self) -> None:
        """The next start begins with an empty spool."""


def build(parsed: ParsedFields, context: BuildContext) -> StdinInput:
    """Make the input; its spool is made by `opened`, when the stream starts."""
    return StdinInput(build_scanner(parsed, context))
