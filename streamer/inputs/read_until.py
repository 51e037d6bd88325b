"""The `read_until` input: reads another input until a message says that it is the last.

It is read on the driver, message by message in order, and what it gives lands in the spool together
with how far it was read.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang import Mapping, compile_mapping
from streamer.durations import SECOND
from streamer.errors import MessageError
from streamer.landing.following import (
    batches_of,
    chunks_between,
    execution,
    follow,
    records_of,
    told,
)
from streamer.landing.landed import Landed
from streamer.landing.lander import Lander, StoppedError
from streamer.landing.store import Store
from streamer.message import Batch, Execution
from streamer.query import query_bool
from streamer.source.opening import Branch, Room, opened
from streamer.source.replayable import Offset, Replayable
from streamer.spec import BuildContext, Example, Field, Kind, Parsed, Spec

INPUT: Final = "input"
CHECK: Final = "check"
IDLE_TIMEOUT: Final = "idle_timeout"
RESTART_INPUT: Final = "restart_input"

FINAL: Final = "benthos_read_until"
_FIRST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.1


def _check(parsed: Parsed) -> Iterator[tuple[str, str]]:
    if not parsed[CHECK] and parsed[IDLE_TIMEOUT] is None:
        yield "", "it is required to set either check or idle_timeout"


SPEC: Final = Spec(
    Kind.INPUT,
    "read_until",
    "Reads an input until a message passes a check, or until nothing comes any more.",
    description=(
        "The message that passes the check is the last one; its metadata `benthos_read_until` is "
        "`final`. The other input is read on the driver, in order, with its processors; how far it "
        "was read and the counters of the check are in the checkpoint, so that a restart goes on "
        "where it was, and an input that was read until the end stays ended."
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
        Field(
            IDLE_TIMEOUT,
            "string",
            "How long nothing may come before the input ends.",
            optional=True,
            duration=True,
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

    def opened(self, room: Room) -> Landed:
        """Begin to read; return what has landed.

        Raises:
            StreamerError: the other input cannot be opened.
        """
        store = Store(room.directory, room.spool_limit)
        reading = _Reading(self, room, store)
        if reading.done:
            store.close()
        else:
            reading.open()
            room.start("read_until", reading.run)
        return Landed(room.directory, inside=not room.local)


class _Reading:
    """One run of the input; its state is what the store's mark keeps."""

    def __init__(self, of: ReadUntilInput, room: Room, store: Store) -> None:
        mark = store.mark or {}
        self.done = bool(mark.get("done"))
        self._of = of
        self._room = room
        self._store = store
        self._lander = Lander(room, store)
        self._number: int = mark.get("number", 0)
        self._at: Offset | None = mark.get("at")
        self._counters: dict[str, int] = mark.get("counters", {})
        self._heard = time.monotonic()
        self._source: Replayable
        self._branch: Branch

    def open(self) -> None:
        """Open the other input."""
        self._branch = self._room.branch(f"input-{self._number}")
        self._source = opened(self._of.source, self._branch.room)

    def run(self) -> None:
        """Read until there is no more to read."""
        pause = _FIRST_PAUSE
        try:
            while True:
                before = self._at
                at = self._source.initial() if before is None else before
                if not follow(self._room, self._source, at, self._take, self._idle):
                    break
                if not self._of.restarts:
                    break
                self._branch.stop()
                pause = _FIRST_PAUSE if self._at != before else min(pause * 2, _LONGEST_PAUSE)
                self._source.finished()
                before_this = self._room.inner(f"input-{self._number}").directory
                self._number, self._at = self._number + 1, None
                self._lander.write([], self._mark())
                shutil.rmtree(before_this, ignore_errors=True)
                if self._idle() or self._room.wait(pause):
                    break
                self.open()
            # It must not go on to take what nobody will read.
            self._branch.stop()
            if not self._room.stopping or self.done:
                self.done = True
                self._lander.write([], self._mark())
                self._store.close()
        except StoppedError:
            return

    def _take(self, start: Offset, end: Offset) -> bool:
        ex = execution(self._room, self._counters)
        batches: list[Batch] = []
        for chunk in chunks_between(self._source, start, end, ex):
            for one in batches_of(chunk):
                self.done = self._is_last(one, ex)
                batches.append(one)
                if self.done:
                    one[0] = one[0].with_meta(**{FINAL: "final"})
                    break
            if self.done:
                break
        self._at = end
        self._lander.write(records_of(batches), self._mark())
        self._source.committed(end)
        if batches:
            self._heard = time.monotonic()
        told(self._room, ex)
        return self.done

    def _is_last(self, batch: Batch, ex: Execution) -> bool:
        if self._of.check is None:
            return False
        try:
            return query_bool(self._of.check, batch, 0, ex)
        except MessageError as e:
            self._room.log("ERROR", f"Failed to execute check query: {e}", {})
            return False

    def _idle(self) -> bool:
        idle = self._of.idle
        if idle is None or idle <= 0 or time.monotonic() - self._heard < idle / SECOND:
            return False
        self._room.log("INFO", "Idle timeout reached", {})
        self.done = True
        return True

    def _mark(self) -> dict[str, Any]:
        return {
            "number": self._number,
            "at": self._at,
            "counters": self._counters,
            "done": self.done,
        }


def build(parsed: Parsed, context: BuildContext) -> ReadUntilInput:
    """Build the other input; it is read once this one is opened."""
    return ReadUntilInput(
        context.whole().build(parsed[INPUT]),
        compile_mapping(parsed[CHECK]) if parsed[CHECK] else None,
        parsed[IDLE_TIMEOUT],
        parsed[RESTART_INPUT],
    )
