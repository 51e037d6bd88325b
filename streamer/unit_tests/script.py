"""The steps of a stream's test as what happens at which time: all that a runner needs to know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from streamer.engine.scripted import Sent
from streamer.spec import Parsed
from streamer.timestamps import parse_event_time
from streamer.unit_tests.messages import make_message

_MICRO_BATCH = ("send", "advance", "clock", "end_of_input")


@dataclass(frozen=True)
class Turn:
    """One step.

    Attributes:
        place: what failures call it: its number, and the line that it begins on.
        restart: the program is stopped and started again.
        runs: a micro-batch runs.
        t: the micro-batch's time, Unix ns.
        sent: its messages.
        ended: the input ends with it.
        expected: the batches that must have come out since the last turn with a list, or None.
    """

    place: str
    restart: bool
    runs: bool
    t: int
    sent: tuple[Sent, ...]
    ended: bool
    expected: tuple[tuple[Parsed, ...], ...] | None


def turns(case: Parsed, directory: Path) -> Iterator[Turn]:
    """Return the steps of a case with `target: stream`, in order.

    `advance` counts from the time of the stream, which never runs backwards, whatever `clock` has
    said since.

    Args:
        case: the case.
        directory: where the files are that messages name.

    Raises:
        StreamerError: a message's file cannot be read.
    """
    clock = latest = parse_event_time(case["clock"])
    for number, step in enumerate(case["steps"]):
        if step["advance"] is not None:
            clock = latest + step["advance"]
        elif step["clock"] is not None:
            clock = parse_event_time(step["clock"])
        latest = max(latest, clock)
        line = min((step.place(name).line for name in step if step.given(name)), default=0)
        yield Turn(
            place=f"step {number} [line {line}]",
            restart=bool(step["restart"]),
            runs=any(step.given(name) for name in _MICRO_BATCH),
            t=clock,
            sent=tuple(_sent(one, directory) for one in step["send"] or ()),
            ended=bool(step["end_of_input"]),
            expected=(step["output_batches"] or ()) if step.given("output_batches") else None,
        )


def _sent(parsed: Parsed, directory: Path) -> Sent:
    message = make_message(parsed, directory)
    return Sent(message.with_error(parsed["failed"]), parsed["partition"], parsed["input"])
