"""Reading of objects in a worker: their bytes, cut into messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from typing import Final, NamedTuple

from streamer.connectors.files.scanned_files import take_first
from streamer.connectors.objects.object_pieces import ObjectPart, ObjectPiece
from streamer.connectors.objects.object_stream import ObjectStream
from streamer.connectors.objects.store import (
    ObjectInfo,
    ObjectMissingError,
    ObjectReplacedError,
    ObjectStore,
    ObjectUnreadableError,
)
from streamer.core.execution import Execution
from streamer.sdk.input.replayable import Chunk, LineMessages, RawMessages
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    ByteStream,
    ScanError,
    ScanInput,
    Scanner,
    SplittableScanner,
    count_messages,
)

_MAX_AHEAD_BYTES: Final = 1 << 20
"""Bytes of an object that is read ahead as a whole, at most."""
_MAX_AHEAD: Final = 16
"""Objects that are read ahead, at most."""
_THREADS: Final = 8

ERROR_COUNTER: Final = "input_error"


class _Ahead(NamedTuple):
    """An object that was read ahead."""

    info: ObjectInfo
    data: bytes


@dataclass(frozen=True, slots=True)
class ObjectReader:
    """Reads pieces.

    Attributes:
        store: has the objects.
        scanner: cuts them.
        is_pinned: whether only the version is read that was listed, since another one is listed
            again.
    """

    store: ObjectStore
    scanner: Scanner
    is_pinned: bool = False

    def read_piece(self, piece: ObjectPiece, ex: Execution) -> Iterator[Chunk]:
        """Read the messages of a piece.

        What cannot be read of one object is logged, and does not stop the others.

        Raises:
            StoreError: the store does not answer or refuses, or an object has been replaced of
                which a part is to be read.
        """
        for part, ahead in self._read_ahead(piece.parts, ex):
            if part.is_reread:
                text = "An object that was read in part was replaced; it is read from the start"
                ex.log("WARN", text, {"source": part.object.key})
            try:
                yield from self._read_part(part, ahead, ex)
            except ScanError as error:
                self._report(f"Failed to read message: {error}", part, ex)
            except ObjectUnreadableError as error:
                self._report(f"Failed to read object: {error}", part, ex)
            except ObjectMissingError:
                self._report("Failed to read object: it is not there any more", part, ex)
            except ObjectReplacedError:
                if not (self.is_pinned and part.is_whole):
                    raise
                text = "An object was replaced before it was read; the new one is read in its turn"
                ex.log("WARN", text, {"source": part.object.key})

    def _report(self, text: str, part: ObjectPart, ex: Execution) -> None:
        ex.log("ERROR", text, {"source": part.object.key})
        ex.count(ERROR_COUNTER)

    def _read_ahead(
        self, parts: Sequence[ObjectPart], ex: Execution
    ) -> Iterator[tuple[ObjectPart, Future[_Ahead] | None]]:
        """Return each part with its bytes, where it is small: several requests are under way."""
        if not any(_is_small(part) for part in parts[1:]):
            yield from ((part, None) for part in parts)
            return
        with ThreadPoolExecutor(_THREADS, "object reader") as pool:
            waiting: deque[tuple[ObjectPart, Future[_Ahead] | None]] = deque()
            try:
                for part in parts:
                    task = pool.submit(self._read_whole, part, ex) if _is_small(part) else None
                    waiting.append((part, task))
                    if len(waiting) >= _MAX_AHEAD:
                        yield waiting.popleft()
                while waiting:
                    yield waiting.popleft()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _read_whole(self, part: ObjectPart, ex: Execution) -> _Ahead:
        stream = self._open(part, ex)
        with closing(stream):
            blocks = []
            while block := stream.read(_MAX_AHEAD_BYTES):
                blocks.append(block)
            return _Ahead(stream.info, b"".join(blocks))

    def _open(self, part: ObjectPart, ex: Execution) -> ObjectStream:
        version = part.object.version if self.is_pinned or not part.is_whole else ""
        return ObjectStream(self.store, part.object.key, ex, version=version)

    def _read_part(
        self, part: ObjectPart, ahead: Future[_Ahead] | None, ex: Execution
    ) -> Iterator[Chunk]:
        if part.lines is not None:
            yield from self._read_lines(part, ex)
        elif ahead is not None:
            info, data = ahead.result()
            yield from self._scan(part, info, BytesIO(data), ex)
        else:
            stream = self._open(part, ex)
            with closing(stream):
                yield from self._scan(part, stream.info, stream, ex)

    def _scan(
        self, part: ObjectPart, info: ObjectInfo, stream: ByteStream, ex: Execution
    ) -> Iterator[Chunk]:
        """Cut an object from a mark on, into at most so many messages."""
        left = part.count
        if left == 0:
            return
        source = ScanInput(stream, info.key, info.metadata, ex)
        max_messages = MAX_CUT_MESSAGES if left is None else min(left, MAX_CUT_MESSAGES)
        for cut in self.scanner.scan_stream(source, part.since, max_messages):
            if left is None:
                yield cut.chunk
                continue
            count = count_messages(cut.chunk)
            yield cut.chunk if count <= left else take_first(cut.chunk, left)
            left -= count
            if left <= 0:
                return

    def _read_lines(self, part: ObjectPart, ex: Execution) -> Iterator[Chunk]:
        """Read a range of lines."""
        scanner, lines = self.scanner, part.lines
        assert isinstance(scanner, SplittableScanner) and lines is not None
        key = part.object.key
        stream = lines.open(self.store, ex)
        metadata = stream.info.metadata
        for block in lines.iter_blocks(stream, self.store, ex):
            line_range = scanner.find_lines(block) if ex.reads_columns else None
            yield (
                RawMessages(scanner.scan_range(block, ex, key), metadata)
                if line_range is None
                else LineMessages(line_range, metadata)
            )


def _is_small(part: ObjectPart) -> bool:
    return part.is_whole and part.object.size <= _MAX_AHEAD_BYTES
