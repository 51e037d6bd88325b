"""Protocols of inputs whose messages can be read again after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

from streamer.core.durations import MILLISECOND
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


POLL_INTERVAL: Final = 250 * MILLISECOND
"""ns between two polls of a source that does not say when it has something (`WakingSource`)."""


@runtime_checkable
class WakingSource(Protocol):
    """A source for which the planner waits, in place of polling it all the time.

    While there is nothing to do the planner waits inside Spark's call for the latest offset. The
    wait ends at once when the planner is woken, and when `next_poll` says; then `latest_offset` is
    called again. A wake-up counts from the moment at which `latest_offset` is called: when data
    comes during the call, or between it and the wait, the wait ends at once. So the order is: make
    the data visible to `latest_offset`, then wake. One that came without data costs a poll.

    Whatever wakes the planner for this source is one of these:

    - The driver has the data: what writes a spool (`SpoolStore.for_input`) wakes the planner by
      `InputContext.wake_planner`. `watch` does nothing, and `next_poll` returns None.
    - The time brings it: `next_poll` returns when. `watch` does nothing.
    - Another system has it, and can be waited for: `watch` starts a daemon thread, which waits for
      that system (a long poll, a notification) and calls `wake`.
    - It must be asked: `next_poll` returns the time of the next question. The planner asks a source
      that is no `WakingSource` every `POLL_INTERVAL`.

    A source that holds others passes both on, by `watch_all` and `earliest_poll`.
    """

    def watch(self, wake: Callable[[], None]) -> None:
        """Begin to wake the planner; called once in its process, before the first poll.

        It must return at once, and must not fail. What it starts ends with the process.

        Args:
            wake: ends the planner's wait, or the next one; cheap, from any thread.
        """

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return when there may be something beyond `start` though nothing wakes the planner.

        Called after a `latest_offset` with the same arguments, whenever no micro-batch starts.

        Args:
            start: the position of the stream.
            now: the stream's clock, Unix ns.

        Returns:
            Unix ns; None when the planner is woken for all that comes.
        """


def watch_all(sources: Iterable[object], wake: Callable[[], None]) -> None:
    """Have each of some sources wake the planner, as far as it can."""
    for source in sources:
        if isinstance(source, WakingSource):
            source.watch(wake)


def next_poll_of(source: object, start: Offset, now: int) -> int | None:
    """Return when a source is to be polled again, Unix ns; None when it wakes the planner."""
    return source.next_poll(start, now) if isinstance(source, WakingSource) else now + POLL_INTERVAL


def announce_pieces(source: Any, pieces: Sequence[Any]) -> None:
    """Pass a source the pieces that a task is about to read, in their order.

    Args:
        source: it may have a method `announce`.
        pieces: what it made in `split`.
    """
    announce = getattr(source, "announce", None)
    if announce is not None:
        announce(pieces)


def earliest_poll(polls: Iterable[int | None]) -> int | None:
    """Return the earliest of some times; None when there is none."""
    return min((one for one in polls if one is not None), default=None)


@runtime_checkable
class MeasurableSource(Protocol):
    """A source that knows how many bytes there are, so that the share can be shown."""

    def extent_between(self, start: Offset, end: Offset) -> FileExtent | None:
        """Return where the bytes between two offsets are; None when that is not known."""


def extent_of(source: object, start: Offset, end: Offset) -> FileExtent | None:
    """Return where in its files a micro-batch is; None for a source that has no files."""
    return source.extent_between(start, end) if isinstance(source, MeasurableSource) else None
