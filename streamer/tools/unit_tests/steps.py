"""The steps of a stream's test as what happens at which time: all that a runner needs to know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from streamer.core.timestamps import parse_event_time
from streamer.engine.offline.scripted import ScriptedMessage
from streamer.sdk.spec import ParsedFields
from streamer.tools.unit_tests.messages import make_message

_MICRO_BATCH_FIELDS = ("send", "advance", "clock", "end_of_input")


@dataclass(frozen=True)
class ScriptStep:
    """One step.

    Attributes:
        place: what failures call it: its number, and the line that it begins on.
        restart: the program is stopped and started again.
        runs_batch: a micro-batch runs.
        time_ns: the micro-batch's time, Unix ns.
        messages: its messages.
        ends_input: the input ends with it.
        expected: the batches that must have come out since the last turn with a list, or None.
    """

    place: str
    restart: bool
    runs_batch: bool
    time_ns: int
    messages: tuple[ScriptedMessage, ...]
    ends_input: bool
    expected: tuple[tuple[ParsedFields, ...], ...] | None


def read_steps(case: ParsedFields, directory: Path) -> Iterator[ScriptStep]:
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
        line = min((step.place(name).line for name in step if step.is_given(name)), default=0)
        yield ScriptStep(
            place=f"step {number} [line {line}]",
            restart=bool(step["restart"]),
            runs_batch=any(step.is_given(name) for name in _MICRO_BATCH_FIELDS),
            time_ns=clock,
            messages=tuple(_make_sent_message(one, directory) for one in step["send"] or ()),
            ends_input=bool(step["end_of_input"]),
            expected=(step["output_batches"] or ()) if step.is_given("output_batches") else None,
        )


def _make_sent_message(parsed: ParsedFields, directory: Path) -> ScriptedMessage:
    message = make_message(parsed, directory)
    return ScriptedMessage(
        message.with_error(parsed["failed"]), parsed["partition"], parsed["input"]
    )
