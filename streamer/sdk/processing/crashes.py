"""Finds the call of a processor that ends the process, and lets such a message pass by.

A crash in C code (or of memory) takes the process with it, so nobody is left to mark the message.
It is found by running the messages once more, in a process of its own, with a mark before each
call of a processor. From then on that call is not made: the message is marked as failed instead.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef

_HEAD: Final = struct.Struct("<qqi")
MARK_SIZE: Final = 4096
_NO_MARK: Final = (-1, 0, "")

Process = Callable[[Batch, Execution], list[Batch]]


class Crash(NamedTuple):
    """A call of a processor that ends the process. The batch is the same whenever it comes again.

    Attributes:
        part: the piece of the micro-batch.
        stage: which of the lists of processors the batch was given to.
        number: the batch's, among those of the piece.
        path: the processor's path; empty when it was in none.
        label: its label.
        call: the number of the processor's call for this batch, from 1.
        reason: how the process ended, in words.
        size: bytes of the batch.
        sample: the beginning of its first message.
    """

    part: str
    stage: str
    number: int
    path: str
    label: str
    call: int
    reason: str
    size: int
    sample: str


class MarkMemory(Protocol):
    """The file of marks; it outlives the process."""

    def __getitem__(self, index: slice, /) -> bytes: ...
    def __setitem__(self, index: slice, value: bytes, /) -> None: ...


class CrashMark:
    """A mark in shared memory: the batch that a process has in hand, and the processor's call."""

    def __init__(self, memory: MarkMemory) -> None:
        """Take `MARK_SIZE` bytes that two processes share."""
        self._memory = memory
        self.at: tuple[int, int, str] = _NO_MARK
        self.write(*_NO_MARK)

    def write(self, index: int, call: int, place: str) -> None:
        """Write what is in hand; `place` is path and label, with a line break between."""
        self.at = (index, call, place)
        text = place.encode()[: MARK_SIZE - _HEAD.size]
        body = _HEAD.pack(index, call, len(text)) + text
        self._memory[0 : len(body)] = body

    def read(self) -> tuple[int, int, str, str]:
        """Return index, call, path and label that the other process wrote last."""
        index, call, size = _HEAD.unpack(self._memory[0 : _HEAD.size])
        path, _, label = self._memory[_HEAD.size : _HEAD.size + size].decode().partition("\n")
        return index, call, path, label


class CallGuard:
    """Counts the calls of processors for one batch after the other, and leaves out known crashes.

    An `Execution` has one while batches run that are looked for, or that have crashed before.
    """

    def __init__(self, mark: CrashMark | None = None) -> None:
        """Take where calls are marked; None where they are not."""
        self._mark = mark
        self._index = -1
        self._known: dict[tuple[str, int], Crash] = {}
        self._counts: dict[str, int] = {}

    def begin(self, index: int, known: Iterable[Crash]) -> None:
        """Begin with a batch of which some crashes are known."""
        self._index = index
        self._known = {(crash.path, crash.call): crash for crash in known}
        self._counts = {}
        if self._mark is not None:
            self._mark.write(index, 0, "")

    def wrap(self, process: Process, origin: ComponentRef) -> Process:
        """Return what counts and marks a processor's calls, and makes no call that crashes."""
        _, label, path = origin.key

        def call(batch: Batch, ex: Execution) -> list[Batch]:
            number = self._counts[path] = self._counts.get(path, 0) + 1
            crash = self._known.get((path, number))
            if crash is not None:
                return [fail_crashed(batch, crash, origin, ex)]
            if self._mark is None:
                return process(batch, ex)
            return self._call_marked(self._mark, number, f"{path}\n{label}", process, batch, ex)

        return call

    def _call_marked(
        self,
        mark: CrashMark,
        number: int,
        place: str,
        process: Process,
        batch: Batch,
        ex: Execution,
    ) -> list[Batch]:
        before = mark.at
        mark.write(self._index, number, place)
        try:
            made = process(batch, ex)
        except MemoryError:
            raise  # It ends the process, here.
        except Exception:
            mark.write(*before)
            raise
        mark.write(*before)
        return made


def fail_crashed(batch: Batch, crash: Crash, origin: ComponentRef | None, ex: Execution) -> Batch:
    """Mark the messages of a batch that ends the process, after saying so in the log.

    Without an origin it was in no processor.
    """
    text = f"the process that works on it ends ({crash.reason})"
    place = {"label": crash.label, "path": crash.path}
    ex.count("processor_crashed", len(batch), **place)
    fields: dict[str, Any] = {**place, "size": crash.size, "sample": crash.sample}
    ex.log("ERROR", f"A message is marked as failed: {text}", fields)
    if origin is None:
        return [message.with_error(text) for message in batch]
    return [origin.mark(message, text, ex) for message in batch]
