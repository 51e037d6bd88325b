"""The first messages of a stream, without Spark: from a file of samples, or from its input."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from streamer.errors import StreamerError
from streamer.inputs.generate import GenerateInput
from streamer.inputs.stdin import StdinInput
from streamer.message import NO_META, Batch, Execution, Message
from streamer.plan import Plan
from streamer.source.counted import CountedInput
from streamer.source.files import Files
from streamer.source.replayable import Chunk, Limit, Raws, Replayable
from streamer.source.scanning import Opened
from streamer.source.scheduled import ScheduledInput

LONGEST = 64 << 20
"""Bytes of a line in a file of samples; some devices have no other end."""

_ROUNDS = 1_000


def sample_of_file(path: str, most: int, stdin: BinaryIO | None = None) -> list[Batch]:
    """Return the lines of a file as messages, each a batch by itself; empty lines are left out.

    Args:
        path: the file; `-` for the standard input.
        most: how many messages there are at most.
        stdin: the standard input; the process's own when None.

    Raises:
        StreamerError: the file cannot be read.
    """
    try:
        if path == "-":
            return list(islice(_lines(stdin or sys.stdin.buffer, path), most))
        with Path(path).open("rb") as file:
            return list(islice(_lines(file, path), most))
    except OSError as e:
        raise StreamerError(f"--input {path}: {(e.strerror or str(e)).lower()}") from None


def _lines(file: BinaryIO, path: str) -> Iterator[Batch]:
    while line := file.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise StreamerError(
                f"--input {path}: a line has more than {LONGEST:,} bytes; expected a message a line"
            )
        if line := line.rstrip(b"\r\n"):
            yield [Message(line)]


def sample_of_input(plan: Plan, most: int, ex: Execution) -> list[Batch]:
    """Return the first batches of a plan's input, as it gives them: before its processors.

    Nothing is marked as read. A `generate` input is not waited for: its clock runs ahead.

    Args:
        plan: the stream's plan.
        most: how many messages there are at most.
        ex: takes what the input logs.

    Raises:
        StreamerError: the input cannot be read, or not without Spark.
    """
    source: Any = plan.context().build(plan.input)
    try:
        if isinstance(source, StdinInput):
            return list(_cut(_piped(source, sys.stdin.buffer, ex), most))
        if isinstance(source, Files):
            return list(_cut(_read(source.resume([]), most, ex), most))
        if isinstance(source, GenerateInput | CountedInput | ScheduledInput):
            return list(_cut(_read(source, most, ex), most))
    except OSError as e:
        raise StreamerError(f"input {plan.input.name}: {(e.strerror or str(e)).lower()}") from None
    raise StreamerError(
        f"the input {plan.input.name} is not read for samples; give sample messages with --input "
        "FILE"
    )


def _piped(source: StdinInput, pipe: BinaryIO, ex: Execution) -> Iterator[Batch]:
    """Read a pipe message by message, so that its end need not be waited for."""
    for cut in source.scanner.cuts(Opened(_Pipe(pipe), "stdin", NO_META, ex), most=1):
        yield from _batches(cut.chunk)


@dataclass(frozen=True)
class _Pipe:
    pipe: BinaryIO

    def read(self, size: int, /) -> bytes:
        """Return what there is of the next line: what follows is left in the pipe."""
        return self.pipe.readline(size)


def _batches(chunk: Chunk) -> Iterator[Batch]:
    if isinstance(chunk, Raws):
        yield from ([Message(raw, chunk.meta)] for raw in chunk.raws)
    else:
        yield from chunk


def _read(source: Replayable, most: int, ex: Execution) -> Iterator[Batch]:
    """Read what a source has; the clock goes on until it has something."""
    start, now = source.initial(), time.time_ns()
    for step in range(_ROUNDS):
        latest = source.latest(start, now, Limit(messages=most))
        for piece in source.split(start, latest.offset, 1):
            for chunk in source.read(piece, ex):
                yield from _batches(chunk)
        if latest.ended:
            return
        start = latest.offset
        now += 10**9 << min(step, 30)


def _cut(batches: Iterator[Batch], most: int) -> Iterator[Batch]:
    left = most
    for batch in batches:
        yield batch[:left]
        left -= len(batch)
        if left <= 0:
            return
