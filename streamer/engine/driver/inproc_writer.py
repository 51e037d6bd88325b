"""The writer of an `inproc` output: batches for inputs of the same program."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from streamer.connectors.inproc import CHANNELS, Channels
from streamer.connectors.spool.blocks import Record
from streamer.connectors.spool.spool_writer import FULL_RETRY_S
from streamer.connectors.spool.store import StoreFullError
from streamer.engine.planner.checkpoint_path import replace_file
from streamer.engine.report.result_frame import Frame
from streamer.sdk.input.input_context import InputContext

_COUNT_BYTES: Final = 4
_BLOCK_BYTES: Final = 8 << 20
"""A block is read at once, and travels to a remote worker as a whole."""
_RECEIVER_TIMEOUT_S: Final = 10.0
"""So long a receiver may be away, as while its stream is deployed anew, without an error."""


class InprocWriter:
    """Gives the batches of a micro-batch to an input, and waits until they are safe there."""

    def __init__(self, name: str, journal: Path, channels: Channels = CHANNELS) -> None:
        """Set up.

        Args:
            name: the channel's.
            journal: where the sender's name is kept, which is another one for each checkpoint.
            channels: those of the program.
        """
        self._name = name
        self._journal = journal
        self._channels = channels
        self._sender = ""
        self._stopping: Callable[[], bool] = lambda: False
        self._wait: Callable[[float], bool] = lambda seconds: False

    def open(self, context: InputContext) -> None:
        """Learn when the stream stops."""
        self._stopping = lambda: context.stopping
        self._wait = context.wait

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Return when all of a micro-batch is safe; what was safe before is not sent again.

        Raises:
            OSError: there is no input, it stops, or its disk is broken; or this stream stops.
        """
        if not frames:
            return
        self._sender = sender = self._sender or self._read_sender()
        self._channels.wait_for_receiver(self._name, _RECEIVER_TIMEOUT_S, self._stopping)
        receiver = self._channels.find_receiver(self._name, sender, batch)
        if receiver is None:
            raise OSError(f"no input inproc {self._name!r} runs in this program")
        received = receiver.count_received(sender, batch) or 0
        for records in _cut_blocks(frames[received:]):
            received += len(records)
            while True:
                try:
                    receiver.append(records, sender, batch, received)
                    break
                except StoreFullError as e:
                    if self._wait(FULL_RETRY_S):
                        raise OSError(str(e)) from None

    def _read_sender(self) -> str:
        """Return the sender's name; it is made, and on the disk, before anything is sent."""
        try:
            return str(json.loads(self._journal.read_bytes())["sender"])
        except FileNotFoundError:
            sender = uuid.uuid4().hex
        self._journal.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._journal, json.dumps({"sender": sender}).encode(), 0o600)
        return sender


def _cut_blocks(frames: Sequence[Frame]) -> Iterator[list[Record]]:
    """Return the records of frames, in blocks of about `_BLOCK_BYTES`."""
    block: list[Record] = []
    size = 0
    for frame in frames:
        count = int.from_bytes(frame.body[:_COUNT_BYTES], "little")
        block.append(Record(frame.body[_COUNT_BYTES:], count))
        size += len(frame.body)
        if size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block
