"""The contract tests of scanners: cuts and marks, whatever the sizes of reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from streamer.core.message import Message
from streamer.sdk.input.replayable import RawMessages
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanInput,
    ScanMark,
    ScannedCut,
)
from streamer.sdk.spec import Kind
from streamer.tools.component_kit.clock import RecordedExecution
from streamer.tools.component_kit.contracts import ComponentContract, expect

_READ_SIZES: Final = (1, 2, 7, 64)
_NAME: Final = "contract.dat"


class _SlowStream:
    """Bytes that come a few at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size, self._at = data, size, 0

    def read(self, size: int, /) -> bytes:
        part = self._data[self._at : self._at + min(size, self._size)]
        self._at += len(part)
        return part


class ScannerContract(ComponentContract):
    """The tests of a scanner.

    Attributes:
        data: a stream of bytes.
        expected: the payloads of its messages, in order.
    """

    kind: ClassVar[Kind] = Kind.SCANNER
    data: ClassVar[bytes] = b""
    expected: ClassVar[Sequence[bytes]] = ()

    def scan(
        self,
        since: ScanMark = START_MARK,
        max_messages: int = MAX_CUT_MESSAGES,
        read_size: int = 1 << 20,
    ) -> Iterator[ScannedCut]:
        """Give the cuts of the stream."""
        with self.use() as tested:
            scanner: Any = tested.build()
            yield from scanner.scan_stream(self.make_input(read_size), since, max_messages)

    def make_input(self, read_size: int = 1 << 20) -> ScanInput:
        """Return the stream, with the metadata that an input gives it."""
        stream = _SlowStream(self.data, read_size)
        return ScanInput(stream, _NAME, {"path": _NAME}, RecordedExecution())

    def test_it_makes_the_expected_messages(self) -> None:
        """The messages of the stream, in order, with the metadata of their source."""
        messages = [message for cut in self.scan() for message in _list_messages(cut)]
        _expect_payloads(messages, self.expected, "the stream")
        for message in messages:
            path = message.meta.get("path")
            expect(path == _NAME, f"a message has the path {path!r}; expected {_NAME!r}")

    def test_sizes_of_reads_change_nothing(self) -> None:
        """A stream that comes a few bytes at a time has the same messages."""
        for size in _READ_SIZES:
            messages = [one for cut in self.scan(read_size=size) for one in _list_messages(cut)]
            _expect_payloads(messages, self.expected, f"reads of {size} bytes")

    def test_a_cut_has_so_many_messages_at_most(self) -> None:
        """`max_messages` bounds each cut, and the messages are the same."""
        cuts = list(self.scan(max_messages=1))
        largest = max((len(_list_messages(cut)) for cut in cuts), default=0)
        expect(largest <= 1, f"a cut has {largest} messages; expected 1 at most")
        messages = [message for cut in cuts for message in _list_messages(cut)]
        _expect_payloads(messages, self.expected, "cuts of one message")

    def test_it_goes_on_from_each_mark(self) -> None:
        """A mark that a checkpoint has kept as JSON leads to the rest of the messages."""
        passed = 0
        for cut in list(self.scan(max_messages=1)):
            passed += len(_list_messages(cut))
            mark = ScanMark(*json.loads(json.dumps(cut.mark)))
            expect(mark.number == passed, f"a mark has {mark.number} messages; expected {passed}")
            messages = [one for rest in self.scan(since=mark) for one in _list_messages(rest)]
            _expect_payloads(messages, self.expected[passed:], f"the mark {cut.mark}")

    def test_it_cuts_two_streams_at_once(self) -> None:
        """A scanner keeps nothing of a stream: two in turns do not mix."""
        with self.use() as tested:
            scanner: Any = tested.build()
            both = [scanner.scan_stream(self.make_input(3), START_MARK, 1) for _ in range(2)]
            messages: list[list[Message]] = [[], []]
            waiting = [0, 1]
            while waiting:
                for at in list(waiting):
                    cut = next(both[at], None)
                    if cut is None:
                        waiting.remove(at)
                    else:
                        messages[at] += _list_messages(cut)
        for own in messages:
            _expect_payloads(own, self.expected, "two streams in turns")


def _list_messages(cut: ScannedCut) -> list[Message]:
    chunk = cut.chunk
    if isinstance(chunk, RawMessages):
        return [Message(raw, chunk.meta) for raw in chunk.raws]
    return [message for batch in chunk for message in batch]


def _expect_payloads(messages: Sequence[Message], expected: Sequence[bytes], case: str) -> None:
    payloads = [message.raw for message in messages]
    expect(payloads == list(expected), f"{case}: it gives {payloads}; expected {list(expected)}")
