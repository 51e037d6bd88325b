"""The first messages of a stream, without Spark: from a file of samples, or from its input."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from streamer.components.inputs.generate import GenerateInput
from streamer.components.inputs.stdin import StdinInput
from streamer.connectors.files.file_source import FileSource
from streamer.connectors.generated.counted_input import CountedInput
from streamer.connectors.generated.scheduled_input import ScheduledInput
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import NO_META, Batch, Message
from streamer.plan import Plan
from streamer.sdk.input.batch_chunks import split_chunks
from streamer.sdk.input.replayable import Limit, ReplayableSource
from streamer.sdk.input.scanning import ScanInput

MAX_LINE_BYTES = 64 << 20
"""Bytes of a line in a file of samples; some devices have no other end."""

_MAX_ROUNDS = 1_000


def read_file_sample(path: str, max_messages: int, stdin: BinaryIO | None = None) -> list[Batch]:
    """Return the lines of a file as messages, each a batch by itself; empty lines are left out.

    Args:
        path: the file; `-` for the standard input.
        max_messages: how many messages there are at most.
        stdin: the standard input; the process's own when None.

    Raises:
        StreamerError: the file cannot be read.
    """
    try:
        if path == "-":
            return list(islice(_read_batches(stdin or sys.stdin.buffer, path), max_messages))
        with Path(path).open("rb") as file:
            return list(islice(_read_batches(file, path), max_messages))
    except OSError as e:
        raise StreamerError(f"--input {path}: {(e.strerror or str(e)).lower()}") from None


def _read_batches(file: BinaryIO, path: str) -> Iterator[Batch]:
    for _, line in read_lines(file, lambda _: f"--input {path}: a line"):
        yield [Message(line)]


def read_lines(file: BinaryIO, name_line: Callable[[int], str]) -> Iterator[tuple[int, bytes]]:
    """Give the lines of a file of samples that are not empty, with their numbers from 1.

    Args:
        file: the file.
        name_line: names a line in an error, by its number.

    Raises:
        StreamerError: a line is longer than `MAX_LINE_BYTES`.
    """
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise StreamerError(
                f"{name_line(number)} has more than {MAX_LINE_BYTES:,} bytes; expected a message "
                "a line"
            )
        if line := line.rstrip(b"\r\n"):
            yield number, line


def read_input_sample(plan: Plan, max_messages: int, ex: Execution) -> list[Batch]:
    """Return the first batches of a plan's input, as it gives them: before its processors.

    Nothing is marked as read. A `generate` input is not waited for: its clock runs ahead.

    Args:
        plan: the stream's plan.
        max_messages: how many messages there are at most.
        ex: takes what the input logs.

    Raises:
        StreamerError: the input cannot be read, or not without Spark.
    """
    source: Any = plan.context().build(plan.input)
    try:
        if isinstance(source, StdinInput):
            return list(_limit_messages(_read_pipe(source, sys.stdin.buffer, ex), max_messages))
        if isinstance(source, FileSource):
            return list(
                _limit_messages(
                    _read_source(source.continue_from([]), max_messages, ex), max_messages
                )
            )
        if isinstance(source, GenerateInput | CountedInput | ScheduledInput):
            return list(_limit_messages(_read_source(source, max_messages, ex), max_messages))
    except OSError as e:
        raise StreamerError(f"input {plan.input.name}: {(e.strerror or str(e)).lower()}") from None
    raise StreamerError(
        f"the input {plan.input.name} is not read for samples; give sample messages with --input "
        "FILE"
    )


def _read_pipe(source: StdinInput, pipe: BinaryIO, ex: Execution) -> Iterator[Batch]:
    """Read a pipe message by message, so that its end need not be waited for."""
    scan_input = ScanInput(_Pipe(pipe), "stdin", NO_META, ex)
    for cut in source.scanner.scan_stream(scan_input, max_messages=1):
        yield from split_chunks([cut.chunk])


@dataclass(frozen=True)
class _Pipe:
    pipe: BinaryIO

    def read(self, size: int, /) -> bytes:
        """Return what there is of the next line: what follows is left in the pipe."""
        return self.pipe.readline(size)


def _read_source(source: ReplayableSource, max_messages: int, ex: Execution) -> Iterator[Batch]:
    """Read what a source has; the clock goes on until it has something."""
    start, now = source.initial_offset(), time.time_ns()
    for step in range(_MAX_ROUNDS):
        latest = source.latest_offset(start, now, Limit(messages=max_messages))
        for piece in source.split(start, latest.offset, 1):
            yield from split_chunks(source.read(piece, ex))
        if latest.is_ended:
            return
        start = latest.offset
        now += 10**9 << min(step, 30)


def _limit_messages(batches: Iterator[Batch], max_messages: int) -> Iterator[Batch]:
    left = max_messages
    for batch in batches:
        yield batch[:left]
        left -= len(batch)
        if left <= 0:
            return
