"""Protocols of inputs whose messages can be read again after a crash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from streamer.core.execution import Execution
from streamer.core.message import Batch

if TYPE_CHECKING:  # numpy is not needed by those who do not read
    from streamer.core.json.columns.line_block import LineRange

Offset = dict[str, Any]
"""A position in a source, as JSON. It is written to Spark's log before it is used."""


class Limit(NamedTuple):
    """Limits of one micro-batch.

    Attributes:
        messages: about so many messages at most.
        size: so many bytes at most, but always at least one message.
    """

    messages: int = 1_000_000
    size: int = 256 << 20

    def within(self, other: Limit) -> Limit:
        """Return the smaller of two limits, each of messages and of bytes."""
        return Limit(min(self.messages, other.messages), min(self.size, other.size))

    def share_of(self, cores: int) -> Limit:
        """Return the limit where so many cores of a cluster share a micro-batch.

        Each has as much as one that is alone: what a micro-batch costs beside its messages grows
        with the cores, and is to stay as small a part of it. A size that the config has asked for
        stays.
        """
        ours = self.size == Limit().size
        return Limit(self.messages * cores, self.size * cores if ours else self.size)


class LatestOffset(NamedTuple):
    """The newest offset of a source, and how much waits beyond a position.

    Attributes:
        offset: the position that one micro-batch may go to.
        waiting: about how many messages lie between; 0 when there is none.
        is_ended: the source is bounded and `offset` is its end.
        has_more: the limit was reached, so the source is behind.
    """

    offset: Offset
    waiting: int
    is_ended: bool = False
    has_more: bool = False


class FileExtent(NamedTuple):
    """The position of a micro-batch in the files of its input.

    Attributes:
        name: of the files in words: `cars.jsonl`, `12 files`.
        before: bytes of the files before the micro-batch.
        size: bytes of the micro-batch.
        total: bytes of all files.
    """

    name: str
    before: int
    size: int
    total: int


@dataclass(frozen=True, slots=True)
class RawMessages:
    """Messages that share their metadata, in the order of the source.

    Attributes:
        raws: the payloads.
        meta: the metadata of each of them; shared, never mutated.
    """

    raws: list[bytes]
    meta: Mapping[str, Any]

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.raws)


class LineMessages(RawMessages):
    """Messages that are the lines of a block, which are cut out when they are needed as such.

    Attributes:
        lines: the lines.
    """

    __slots__ = ("lines",)
    lines: LineRange

    def __init__(self, lines: LineRange, meta: Mapping[str, Any]) -> None:
        """Take lines and the metadata of each of them."""
        object.__setattr__(self, "lines", lines)
        object.__setattr__(self, "meta", meta)

    @property
    def raws(self) -> list[bytes]:
        """Cut the lines out."""
        return self.lines.to_list()

    def __len__(self) -> int:
        """Return the number of lines, which is known without cutting them."""
        return len(self.lines)


Chunk = RawMessages | list[Batch]
"""Messages as a source gives them: plain payloads (each a batch of one), or whole batches."""


class ReadableSource(Protocol):
    """A source as stage 1 reads it."""

    def read(self, piece: Any, ex: Execution) -> Iterator[Chunk]:
        """Read one piece, in arrival order."""

    def partition_of(self, piece: Any) -> str:
        """Name the partition that a piece is from: within one, messages are in order."""


class ReplayableSource(ReadableSource, Protocol):
    """A source whose messages between two offsets are the same whenever they are read.

    It is pickled to the process that plans micro-batches and to the workers. The planning process
    calls `initial`, `latest`, `split` and `committed`; workers call `read`.
    """

    def initial_offset(self) -> Offset:
        """Return the position at which a stream without a checkpoint starts."""

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Return how far one micro-batch that begins at `start` may go; `now` in Unix ns."""

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        """Cut what lies between two offsets into about `parts` pieces, in arrival order."""

    def on_committed(self, end: Offset) -> None:
        """Note that everything before `end` is safe in the checkpoint."""

    def on_finished(self) -> None:
        """Note that a bounded source was read to its end, and that all of it is safe."""


@runtime_checkable
class MeasurableSource(Protocol):
    """A source that knows how many bytes there are, so that the share can be shown."""

    def extent_between(self, start: Offset, end: Offset) -> FileExtent | None:
        """Return where the bytes between two offsets are; None when that is not known."""


def extent_of(source: object, start: Offset, end: Offset) -> FileExtent | None:
    """Return where in its files a micro-batch is; None for a source that has no files."""
    return source.extent_between(start, end) if isinstance(source, MeasurableSource) else None
