"""Protocols of scanners, which cut a stream of bytes into messages, and of the bytes they read.

A scanner is given anything that has `read(size)` (a file, a pipe, a socket, a request's body, what
comes out of a decompressor) and gives the messages as they become whole. It never asks for more
bytes while it has messages to give, so it can be put behind a connection that stays open.

Whoever can read his bytes again may stop behind any cut, keep its mark, and go on from there, even
in another process: a mark is a place in the stream that the innermost scanner reads, and the little
that this scanner must know besides. Whoever cannot (a pipe, a socket) ignores the marks.

    source = Opened(stream, "in.csv", {"path": "in.csv"}, ex)
    for cut in scanner.cuts(source):
        use(cut.chunk)

Compositions (`decompress`, `skip_bom`, `switch`) wrap the stream or choose by name, and hand on the
rest. `lines` alone can also cut any range of bytes that ends at a delimiter (see
`SplittableScanner`), so that one large file is read by several workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import NO_META
from streamer.sdk.input.replayable import Chunk, RawMessages

if TYPE_CHECKING:  # numpy is not needed by those who do not read
    from streamer.core.json.columns.line_block import LineRange

BLOCK_BYTES: Final = 1 << 18
"""Bytes that scanners ask for at a time."""

MAX_CUT_MESSAGES: Final = 1_000
"""Messages in a cut, unless somebody asks for fewer."""


class ScanError(StreamerError):
    """The stream holds something that the scanner cannot read; what is left of it is lost."""


class ByteStream(Protocol):
    """The origin of a stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes, and at least one; none at the end of the stream."""


class PrefixedStream:
    """Bytes that have been read too early, and the stream behind them."""

    def __init__(self, data: bytes, stream: ByteStream) -> None:
        """Take the bytes, and what follows them."""
        self._data = data
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        """Read the bytes first, then the stream; see `ByteStream`."""
        if not self._data:
            return self._stream.read(size)
        head, self._data = self._data[:size], self._data[size:]
        return head


class ScanMark(NamedTuple):
    """A place between two messages of a stream.

    Attributes:
        position: bytes of the innermost scanner's stream before it.
        number: messages before it.
        state: what the scanner has to know to go on; a value that JSON can hold.
    """

    position: int = 0
    number: int = 0
    state: Any = None


START_MARK: Final = ScanMark()


class ScannedCut(NamedTuple):
    """Messages, and where they end.

    Attributes:
        chunk: the messages, in order; each of a `RawMessages` is a batch by itself.
        mark: the place behind the last of them.
    """

    chunk: Chunk
    mark: ScanMark


@dataclass(frozen=True, slots=True)
class ScanInput:
    """A stream of bytes that is to be cut.

    Attributes:
        stream: the bytes, from their beginning on.
        name: what the source is called (a file's path as it is written), or an empty string.
        meta: metadata of every message; scanners add their own to it.
        ex: takes what the scanner logs and counts.
    """

    stream: ByteStream
    name: str
    meta: Mapping[str, Any]
    ex: Execution

    def with_stream(self, stream: ByteStream) -> ScanInput:
        """Return this source with another stream of bytes."""
        return replace(self, stream=stream)


class Scanner(Protocol):
    """Cuts streams; it holds nothing of them, so one scanner may cut many at once."""

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream, from a mark on.

        Args:
            source: the stream, from its beginning on; what is before the mark is skipped.
            since: a mark of an earlier cut of the same bytes.
            max_messages: the most messages of a cut.

        Raises:
            ScanError: the bytes cannot be read, from here on.
            OSError: the stream cannot.
        """


@runtime_checkable
class SplittableScanner(Protocol):
    """A scanner that can begin behind any delimiter, whatever stands before it."""

    @property
    def delimiter(self) -> bytes:
        """The delimiter of messages."""

    def scan_range(self, data: bytes, ex: Execution, source: str = "") -> list[bytes]:
        """Cut a range that begins behind a delimiter."""

    def find_lines(self, data: bytes) -> LineRange | None:
        """Return the messages of a range as lines; None where `scan_range` must cut it."""


@runtime_checkable
class FixedSizeScanner(Protocol):
    """A scanner that knows where a message is without looking at those before it."""

    def mark_of(self, number: int) -> ScanMark:
        """Return the mark before a message, by its number from 0."""


def expansion_of(scanner: Scanner) -> int:
    """Return about how many bytes a scanner makes of one: those that unpack say it themselves."""
    expansion: int = getattr(scanner, "expansion", 1)
    return expansion


def is_whole_reader(scanner: Scanner) -> bool:
    """Return whether a scanner makes one message of a stream, so that nothing ends within it."""
    is_whole: bool = getattr(scanner, "takes_whole", False)
    return is_whole


def skip_bytes(stream: ByteStream, size: int) -> None:
    """Leave out bytes: those of a file are not read; behind the end there is nothing to skip."""
    seek = getattr(stream, "seek", None)
    if size and seek is not None and stream.seekable():  # type: ignore[attr-defined]
        seek(size, 1)
        return
    while size:
        count = len(stream.read(min(size, BLOCK_BYTES)))
        if not count:
            return
        size -= count


def count_messages(chunk: Chunk) -> int:
    """Return the number of messages in a chunk."""
    return len(chunk.raws) if isinstance(chunk, RawMessages) else sum(map(len, chunk))


def silent_execution() -> Execution:
    """Return a run that says nothing, for whoever only looks where messages end."""
    return Execution(lambda: 0)


def silent_input(stream: ByteStream, name: str = "") -> ScanInput:
    """Return a stream whose scanner says nothing, and whose messages have no metadata."""
    return ScanInput(stream, name, NO_META, silent_execution())
