"""Runs of single components: a processor on messages, an input to its end, an output."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.driver.input_host import InputHost
from streamer.sdk.input.input_context import open_input
from streamer.sdk.input.replayable import Limit, Offset, RawMessages, next_poll_of
from streamer.sdk.output.protocols import SendError
from streamer.sdk.processing import run
from streamer.tools.component_kit.clock import RecordedExecution, ScriptedClock
from streamer.tools.component_kit.components import Content, TestedComponent, make_batch

_POLL_INTERVAL_S: Final = 0.005
_STOP_TIMEOUT_S: Final = 10.0
_MAX_STEP_NS: Final = 3600 * SECOND


def run_processor(
    tested: TestedComponent, batches: Iterable[Sequence[Content]], ex: Execution | None = None
) -> list[Batch]:
    """Run batches through a processor as a stream does; return the batches that it makes.

    Args:
        tested: the processor.
        batches: the batches; each is a list of payloads, texts, JSON values or messages.
        ex: the run; one on a scripted clock when None.
    """
    made = [make_batch(*contents) for contents in batches]
    return list(run([tested.build()], made, ex or RecordedExecution()))


def send_batches(
    tested: TestedComponent, batches: Iterable[Sequence[Content]], ex: Execution | None = None
) -> list[SendError | None]:
    """Send batches by an output, once; return for each the reason why it failed, or None.

    Args:
        tested: the output.
        batches: the batches, in order.
        ex: the run; one on a scripted clock when None.
    """
    made = [make_batch(*contents) for contents in batches]
    errors: list[SendError | None] = tested.build().deliver(made, ex or RecordedExecution()).errors
    return errors


class InputReader:
    """An input that is read as a stream reads it, from micro-batch to micro-batch.

    Attributes:
        clock: the clock of the stream; it moves on to the next moment at which there is something.
        offset: the position that is committed.
        is_ended: whether the input has come to its end.
    """

    host: InputHost
    offset: Offset
    is_ended: bool

    def __init__(
        self,
        tested: TestedComponent,
        directory: Path,
        clock: ScriptedClock | None = None,
        before: InputReader | None = None,
    ) -> None:
        """Start a stream.

        Args:
            tested: the input.
            directory: the directory of its checkpoint.
            clock: the clock.
            before: the reader whose stream goes on; None for a new stream.

        Raises:
            StreamerError: the input cannot be opened.
        """
        self.clock = clock or ScriptedClock()
        self.ex = RecordedExecution(self.clock)
        self._tested = tested
        self._directory = directory
        known: dict[str, Any] = {} if before is None else before.host.remembered
        self.host = InputHost(directory, known, self.ex.log, self.ex.count, threading.Event())
        self.host.remembered.update(known)
        self._source: Any = open_input(tested.build(), self.host.root_context())
        self.offset = self._source.initial_offset() if before is None else before.offset
        self.is_ended = False

    def read(self, max_messages: int | None = None, timeout: float = 10.0) -> list[Batch]:
        """Read batches to the end of the input, or until there are so many messages or more.

        Args:
            max_messages: about how many messages; None for all.
            timeout: seconds without a message after which the input counts as silent.
        """
        batches: list[Batch] = []
        last = time.monotonic()
        while not self.is_ended and time.monotonic() - last < timeout:
            count = sum(map(len, batches))
            if max_messages is not None and count >= max_messages:
                break
            limit = Limit() if max_messages is None else Limit(max_messages - count)
            made = self.step(limit)
            batches += made
            if made:
                last = time.monotonic()
            elif not self.is_ended:
                self._wait()
        return batches

    def step(self, limit: Limit) -> list[Batch]:
        """Read one micro-batch, and commit it; empty when there is nothing yet."""
        latest = self._source.latest_offset(self.offset, self.clock.now(), limit)
        if not latest.waiting and latest.offset == self.offset:
            self.is_ended = latest.is_ended
            return []
        batches = self.replay(latest.offset)
        self.offset = latest.offset
        self._source.on_committed(latest.offset)
        self.is_ended = latest.is_ended
        return batches

    def replay(self, end: Offset, parts: int = 1) -> list[Batch]:
        """Read what lies between the committed position and another one, as workers do.

        The source goes to the workers and back, in so many parts. Nothing is committed.
        """
        source = pickle.loads(pickle.dumps(self._source))
        pieces = pickle.loads(pickle.dumps(self._source.split(self.offset, end, parts)))
        return [
            batch
            for piece in pieces
            for chunk in source.read(piece, self.ex)
            for batch in _to_batches(chunk)
        ]

    def find_end(self, timeout: float = 10.0) -> Offset | None:
        """Return the position that the next micro-batch goes to; None when nothing comes.

        Args:
            timeout: seconds to wait for a message.
        """
        last = time.monotonic()
        while time.monotonic() - last < timeout:
            latest = self._source.latest_offset(self.offset, self.clock.now(), Limit())
            if latest.waiting:
                offset: Offset = latest.offset
                return offset
            self._wait()
        return None

    def close(self) -> bool:
        """Stop the stream; return whether all receivers have ended within 10 s."""
        self.host.stop()
        return self.host.join(_STOP_TIMEOUT_S)

    def restart(self) -> InputReader:
        """Stop the stream, and start it again on the same checkpoint."""
        self.close()
        return InputReader(self._tested, self._directory, self.clock, self)

    def _wait(self) -> None:
        """Let time pass until there may be something."""
        poll = next_poll_of(self._source, self.offset, self.clock.now())
        if poll is not None:
            self.clock.advance(min(poll - self.clock.now(), _MAX_STEP_NS))
        time.sleep(_POLL_INTERVAL_S)


def read_input(
    tested: TestedComponent,
    directory: Path,
    max_messages: int | None = None,
    timeout: float = 10.0,
) -> list[Batch]:
    """Read an input to its end, or until there are so many messages; see `InputReader.read`."""
    reader = InputReader(tested, directory)
    try:
        return reader.read(max_messages, timeout)
    finally:
        reader.close()


def _to_batches(chunk: RawMessages | list[Batch]) -> list[Batch]:
    if isinstance(chunk, RawMessages):
        return [[Message(raw, chunk.meta)] for raw in chunk.raws]
    return chunk
