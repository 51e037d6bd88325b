"""The `read_until` input: reads another input until a message says that it is the last.

It is read on the driver, message by message in order, and what it gives goes into the spool
together with how far it was read.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.connectors.spool.driver_reader import (
    batches_of_chunk,
    chunks_between,
    make_execution,
    read_until_end,
    records_of_batches,
    report_stats,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import SpoolWriter, StreamStoppedError
from streamer.connectors.spool.store import SpoolStore
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.input.input_context import InputContext, StoppableContext, open_input
from streamer.sdk.input.replayable import Offset, ReplayableSource
from streamer.sdk.mapping_query import query_bool
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field

INPUT: Final = "input"
CHECK: Final = "check"
IDLE_TIMEOUT: Final = "idle_timeout"
RESTART_INPUT: Final = "restart_input"

FINAL: Final = "benthos_read_until"
_FIRST_BACKOFF_S: Final = 0.001
_MAX_BACKOFF_S: Final = 0.1


def _check(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    if not parsed[CHECK] and parsed[IDLE_TIMEOUT] is None:
        yield "", "it is required to set either check or idle_timeout"


SPEC: Final = Spec(
    Kind.INPUT,
    "read_until",
    "Reads an input until a message passes a check, or until no more messages arrive.",
    description=(
        "The message that passes the check is the last one; its metadata `benthos_read_until` "
        "is `final`. The other input is read on the driver, in order, with its processors. "
        "The checkpoint has its position and the counters of the check, so that a restart "
        "continues there, and an ended input stays ended."
    ),
    fields=(
        Field(INPUT, "input", "The input that is read."),
        Field(
            CHECK,
            "string",
            "A Bloblang query over the first message of each batch; true ends the input.",
            optional=True,
            mapping=True,
            examples=('this.type == "foo"', 'count("messages") >= 100'),
        ),
        duration_field(
            IDLE_TIMEOUT,
            "The input ends after this time without a message.",
            optional=True,
            examples=("5s",),
        ),
        Field(
            RESTART_INPUT,
            "bool",
            "Open the other input again when it ends before the check is passed.",
            default=False,
        ),
    ),
    check=_check,
    examples=(
        Example(
            "The first hundred messages",
            "input:\n"
            "  read_until:\n"
            '    check: count("messages") >= 100\n'
            "    input:\n"
            "      generate: { mapping: 'root.id = uuid_v4()', interval: 10ms }\n",
        ),
    ),
    begin={"idle_timeout": "5s"},
    categories=("Utility",),
    runs="children",
)


@dataclass(frozen=True)
class ReadUntilInput:
    """The input before it is opened.

    Attributes:
        source: what is read, with its processors; not opened.
        check: says which message is the last, or None.
        idle: ns without messages after which it ends, or None.
        restarts: whether the source is opened again when it ends.
    """

    source: Any
    check: Mapping | None
    idle: int | None
    restarts: bool

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read; return the source of what the spool holds.

        Raises:
            StreamerError: the other input cannot be opened.
        """
        store = SpoolStore.for_input(context)
        reading = _UntilReader(self, context, store)
        if reading.is_done:
            store.close()
        else:
            reading.open()
            context.start("read_until", reading.run)
        return SpoolSource.for_input(context)


class _UntilReader:
    """One run of the input; its state is what the store's mark keeps."""

    def __init__(self, spec: ReadUntilInput, context: InputContext, store: SpoolStore) -> None:
        mark = store.mark or {}
        self.is_done = bool(mark.get("done"))
        self._of = spec
        self._context = context
        self._store = store
        self._spool_writer = SpoolWriter(context, store)
        self._number: int = mark.get("number", 0)
        self._at: Offset | None = mark.get("at")
        self._counters: dict[str, int] = mark.get("counters", {})
        self._last_message_at = time.monotonic()
        self._source: ReplayableSource
        self._branch: StoppableContext

    def open(self) -> None:
        """Open the other input."""
        self._branch = self._context.stoppable_child(f"input-{self._number}")
        self._source = open_input(self._of.source, self._branch.context)

    def run(self) -> None:
        """Read until there is no more to read."""
        pause = _FIRST_BACKOFF_S
        try:
            while True:
                before = self._at
                at = self._source.initial_offset() if before is None else before
                if not read_until_end(self._context, self._source, at, self._take, self._on_idle):
                    break
                if not self._of.restarts:
                    break
                self._branch.stop()
                pause = _FIRST_BACKOFF_S if self._at != before else min(pause * 2, _MAX_BACKOFF_S)
                self._source.on_finished()
                before_this = self._context.child(f"input-{self._number}").directory
                self._number, self._at = self._number + 1, None
                self._spool_writer.write([], self._make_mark())
                shutil.rmtree(before_this, ignore_errors=True)
                if self._on_idle() or self._context.wait(pause):
                    break
                self.open()
            # It must not go on to take what nobody will read.
            self._branch.stop()
            if not self._context.stopping or self.is_done:
                self.is_done = True
                self._spool_writer.write([], self._make_mark())
                self._store.close()
        except StreamStoppedError:
            return

    def _take(self, start: Offset, end: Offset) -> bool:
        ex = make_execution(self._context, self._counters)
        batches: list[Batch] = []
        for chunk in chunks_between(self._source, start, end, ex):
            for one in batches_of_chunk(chunk):
                self.is_done = self._is_last(one, ex)
                batches.append(one)
                if self.is_done:
                    one[0] = one[0].with_added_metadata(**{FINAL: "final"})
                    break
            if self.is_done:
                break
        self._at = end
        self._spool_writer.write(records_of_batches(batches), self._make_mark())
        self._source.on_committed(end)
        if batches:
            self._last_message_at = time.monotonic()
        report_stats(self._context, ex)
        return self.is_done

    def _is_last(self, batch: Batch, ex: Execution) -> bool:
        if self._of.check is None:
            return False
        try:
            return query_bool(self._of.check, batch, 0, ex)
        except MessageError as e:
            self._context.log("ERROR", f"Failed to execute check query: {e}", {})
            return False

    def _on_idle(self) -> bool:
        idle = self._of.idle
        if idle is None or idle <= 0 or time.monotonic() - self._last_message_at < idle / SECOND:
            return False
        self._context.log("INFO", "Idle timeout reached", {})
        self.is_done = True
        return True

    def _make_mark(self) -> dict[str, Any]:
        return {
            "number": self._number,
            "at": self._at,
            "counters": self._counters,
            "done": self.is_done,
        }


def build(parsed: ParsedFields, context: BuildContext) -> ReadUntilInput:
    """Build the other input; it is read once this one is opened."""
    return ReadUntilInput(
        context.with_processors().build(parsed[INPUT]),
        compile_mapping(parsed[CHECK]) if parsed[CHECK] else None,
        parsed[IDLE_TIMEOUT],
        parsed[RESTART_INPUT],
    )
