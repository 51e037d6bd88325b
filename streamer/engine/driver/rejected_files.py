"""The files of rejected messages: one for each micro-batch that has left some."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgpack

from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.metric_labels import Labels
from streamer.engine.report.rejected_messages import (
    RejectedMessages,
    decode_rejected,
    encode_rejected,
)
from streamer.engine.report.trouble import take_sample


@dataclass(slots=True)
class WaitingMessages:
    """Messages that wait to be sent again, without their payloads.

    Attributes:
        batch: the micro-batch that has left them.
        index: their place in its file.
        output: the config path of the output.
        label: of the output.
        text: why they were rejected last.
        reason: a `Reason`, or `UNSENT`.
        messages: how many there are.
        size: bytes in the file.
        since: when they were rejected first, Unix ns.
        tries: how often they have been sent.
        tries_now: how often that was since the program started.
        due: when they are sent again, Unix ns.
        source: label and path of the processor that had failed on them; empty where none had.
        sample: the beginning of the first of them.
        written: the micro-batch that has written them; None while they wait.
    """

    batch: int
    index: int
    output: str
    label: str
    text: str
    reason: str
    messages: int
    size: int
    since: int
    tries: int = 1
    due: int = 0
    written: int | None = None
    tries_now: int = 1
    source: Labels = field(default_factory=dict)
    sample: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """Return label and path of the output, as metrics have them."""
        return {"label": self.label, "path": f"root.{self.output}"}

    def to_document(self) -> dict[str, Any]:
        """Return what the API shows of them."""
        return {
            **self.labels,
            "since": format_rfc3339(self.since),
            "tries": self.tries,
            "reason": self.reason,
            "error": self.text,
            "source": self.source.get("path", ""),
            "sample": self.sample,
        }


def make_waiting(
    batch: int, index: int, one: RejectedMessages, size: int, since: int, due: int
) -> WaitingMessages:
    """Return what is known of messages without their payloads."""
    where = (batch, index, one.output, one.label, one.text, one.reason)
    made = WaitingMessages(*where, max(len(one.batch), 1), size, since, due=due)
    if one.source:
        _, label, path = one.source
        made.source = {"label": label, "path": f"root.{path}"}
    made.sample = take_sample(one.batch[0].raw) if one.batch else ""
    return made


def encode_entry(one: RejectedMessages) -> bytes:
    """Return messages as they stand in a file."""
    return b"".join(encode_rejected([one]))


def decode_file(body: bytes) -> tuple[int, list[tuple[RejectedMessages, int]]]:
    """Return when a file was written, and what is in it, each with its size."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(body)
    since: int = unpacker.unpack()
    begin = unpacker.tell()
    entries: list[tuple[RejectedMessages, int]] = []
    while begin < len(body):
        unpacker.skip()
        end = unpacker.tell()
        entries.append((next(decode_rejected(body[begin:end])), end - begin))
        begin = end
    return since, entries
