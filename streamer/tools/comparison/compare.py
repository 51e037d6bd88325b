"""A comparison of two programs: what each makes of the same recorded messages."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from streamer.core.durations import SECOND, parse_duration
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.canary.emissions import ResultRow
from streamer.engine.offline.window_simulator import EventTimeReader
from streamer.plan import Plan
from streamer.sdk.lookup_table import use_local_tables
from streamer.sdk.processing import run
from streamer.tools.comparison.benthos_config import (
    check_config,
    make_benthos_config,
    write_config,
)
from streamer.tools.comparison.config_document import ConfigDocument
from streamer.tools.comparison.programs import Program
from streamer.tools.comparison.recording import (
    RecordedMessage,
    read_envelope,
    write_envelopes,
)
from streamer.tools.comparison.row_comparison import (
    OutputRow,
    RowComparison,
    RowRules,
    compare_rows,
)
from streamer.tools.comparison.run_sides import (
    Side,
    WindowTimes,
    find_free_port,
    run_by_clock,
    run_files,
)
from streamer.tools.comparison.side_config import (
    DAYS_AT_ONCE,
    Exchange,
    TimeShift,
    find_buffer_fields,
    list_buffers,
    make_side_config,
)

_SYSTEM_WINDOW: Final = "system_window"
_DAY_S: Final = 86_400
_WINDOW_METADATA: Final = "window_"
_LATE: Final = "output_resources."


@dataclass(frozen=True)
class Participant:
    """A program with the config that it is to run.

    Attributes:
        program: the program.
        document: the config.
    """

    program: Program
    document: ConfigDocument


@dataclass(frozen=True)
class ComparisonRequest:
    """A comparison.

    Attributes:
        plan: of the config of this program.
        this: this program.
        other: the other one.
        messages: the recorded messages.
        rules: what matters of rows.
        seconds: how long it may take.
        directory: an empty one, which belongs to the comparison.
        report: gets lines on how it goes on.
    """

    plan: Plan
    this: Participant
    other: Participant
    messages: Sequence[RecordedMessage]
    rules: RowRules
    seconds: float
    directory: Path
    report: Callable[[str], None]


@dataclass(frozen=True)
class ComparisonOutcome:
    """The outcome of a comparison.

    Attributes:
        rows: the counts, and the rows that differ.
        notes: parts that are not compared, in sentences.
        seconds: how long both programs ran.
    """

    rows: RowComparison
    notes: tuple[str, ...]
    seconds: float


def compare(request: ComparisonRequest) -> ComparisonOutcome:
    """Run both programs, and compare their rows.

    Raises:
        StreamerError: a program cannot run its config, fails, or takes too long.
    """
    windows = _read_window_times(request)
    shift = None if windows is None else _choose_shift(windows.first, time.time_ns())
    other = _make_side(request.other, "other", request, shift)
    this = _make_side(request.this, "this", request, shift)
    begin = time.monotonic()
    if windows is None or shift is None:
        with (request.directory / "input.jsonl").open("wb") as file:
            write_envelopes(request.messages, file)
        run_files((other, this), request.seconds)
    else:
        run_by_clock(
            *((other, this), request.messages, windows),
            moved=shift.days * DAYS_AT_ONCE * _DAY_S,
            seconds=request.seconds,
            report=request.report,
        )
    seconds = time.monotonic() - begin
    notes = [*other.config.notes, *this.config.notes]
    if windows is not None:
        notes.append("event times are moved to now, so that windows of the system clock close")
    if request.other.program.is_benthos:
        this.config.rows = {
            path: file for path, file in this.config.rows.items() if not path.startswith(_LATE)
        }
    has_paths = other.config.rows.keys() == this.config.rows.keys()
    if not has_paths:
        notes.append("the outputs have other places, so it is not compared which one a row is for")
    rules = _adapt_rules(request, other, this)
    rows = compare_rows(
        lambda: _read_rows(other, has_paths), lambda: _read_rows(this, has_paths), rules
    )
    return ComparisonOutcome(rows, tuple(dict.fromkeys(notes)), seconds)


def _make_side(
    one: Participant, name: str, request: ComparisonRequest, shift: TimeShift | None
) -> Side:
    """Write the config of a side, and have it checked where it is Benthos's."""
    directory = request.directory / name
    directory.mkdir()
    program = one.program
    port = 0 if shift is None or program.is_benthos else find_free_port()
    input_file = request.directory / "input.jsonl" if shift is None else None
    address = f"127.0.0.1:{port}" if port else ""
    exchange = Exchange(directory, input_file, shift, address)
    if program.is_benthos:
        config = make_benthos_config(one.document, exchange)
    else:
        config = make_side_config(one.document.values, exchange)
    file = directory / "config.yaml"
    file.touch(0o600)
    file.write_text(write_config(config), encoding="utf-8")
    if program.is_benthos:
        check_config(program, str(file), config, one.document)
    more = () if program.is_benthos else ("--checkpoint", str(directory / "checkpoint"))
    return Side(program.name, program, config, directory, (*program.run, *more, str(file)), port)


def _read_rows(side: Side, has_path: bool) -> Iterator[OutputRow]:
    for file in side.config.rows.values():
        if not file.exists():
            continue
        with file.open("rb") as lines:
            for line in lines:
                try:
                    message, error, path = read_envelope(line)
                except (ValueError, KeyError, TypeError):
                    raise StreamerError(f"{side.title} has given a row that is cut") from None
                metadata = json.dumps(message.metadata) if message.metadata else None
                row = ResultRow(message.content, metadata, error)
                yield OutputRow(path if has_path else "", row)


def _adapt_rules(request: ComparisonRequest, other: Side, this: Side) -> RowRules:
    """Return the rules of a comparison with Benthos, whose windows give fewer metadata."""
    rules = request.rules
    if not request.other.program.is_benthos:
        return rules
    names: set[str] = set()
    for side in (other, this):
        for row in _read_rows(side, has_path=False):
            of_row = json.loads(row.result.metadata) if row.result.metadata else {}
            if side is this:
                names.update(one for one in of_row if not one.startswith(_WINDOW_METADATA))
            else:
                names.update(of_row)
    return replace(rules, fields=replace(rules.fields, metadata=frozenset(names)))


def _choose_shift(first: int, now: int) -> TimeShift:
    """Return by how many days the configs move times; the rest of it is never negative."""
    return TimeShift(math.floor((now - first) / SECOND / _DAY_S / DAYS_AT_ONCE))


def _read_window_times(request: ComparisonRequest) -> WindowTimes | None:
    """Return the times of a recording if windows close by the system clock; None if none does.

    Raises:
        StreamerError: the messages have no times by which windows could be compared.
    """
    by_clock = [
        fields
        for one in (request.other, request.this)
        for buffer in list_buffers(one.document.values)
        for name, fields in [find_buffer_fields(buffer)]
        if name == _SYSTEM_WINDOW or fields.get("clock") == "system"
    ]
    if not by_clock:
        return None
    grids = [_Grid.read(fields) for fields in by_clock]
    has_times = all(fields.get("timestamp_mapping") for fields in by_clock)
    times = list(_read_event_times(request)) if has_times else []
    if not times:
        raise StreamerError(
            "no message has an event time by timestamp_mapping, and windows by the time of arrival "
            "cannot be compared; expected a timestamp_mapping that reads a time of the message"
        )
    step = math.lcm(SECOND, *(grid.step for grid in grids))
    first = min(grid.floor(min(times)) for grid in grids)
    last = max(max(times) + grid.size + grid.lateness for grid in grids) + SECOND
    return WindowTimes(first, last, step)


@dataclass(frozen=True, slots=True)
class _Grid:
    """The bounds of windows, ns."""

    size: int
    step: int
    offset: int
    lateness: int

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> _Grid:
        """Return the grid of a buffer's fields, as they are written."""
        size, slide, offset, lateness = (
            parse_duration(str(fields.get(name) or "0s"))
            for name in ("size", "slide", "offset", "allowed_lateness")
        )
        return cls(size or SECOND, slide or size or SECOND, offset, lateness)

    def floor(self, time: int) -> int:
        """Return the start of the step that a time is in."""
        return (time - self.offset) // self.step * self.step + self.offset


def _read_event_times(request: ComparisonRequest) -> Iterator[int]:
    """Give the event times of messages, behind the processors of the input."""
    plan = request.plan
    if not plan.timestamp:
        return
    reader, ex = EventTimeReader(plan), Execution(time.time_ns)
    now = time.time_ns()
    with use_local_tables(plan.resources, plan.context()):
        processors = plan.context().build_all(plan.input.processors)
        for one in request.messages:
            batch = [Message(one.content, dict(one.metadata))]
            for done in run(processors, [batch], ex):
                for message in done:
                    at = reader.read(message, now)
                    if at is not None:
                        yield at
