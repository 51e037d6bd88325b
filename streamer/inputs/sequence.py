"""The `sequence` input: reads inputs one after another, each when the one before it has ended.

They are read on the driver, and what they give lands in the spool together with how far they were
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamer.landing.following import (
    batches_of,
    chunks_between,
    execution,
    follow,
    records_of,
    told,
)
from streamer.landing.joining import MERGES, Joiner
from streamer.landing.landed import Landed
from streamer.landing.lander import Lander, StoppedError
from streamer.landing.store import Store
from streamer.message import Batch
from streamer.source.opening import Room, opened
from streamer.source.replayable import Offset, Replayable
from streamer.spec import Access, BuildContext, Example, Field, Kind, Parsed, Spec

INPUTS: Final = "inputs"
SHARDED_JOIN: Final = "sharded_join"
TYPE: Final = "type"
ID_PATH: Final = "id_path"
ITERATIONS: Final = "iterations"
MERGE_STRATEGY: Final = "merge_strategy"

_TOGETHER: Final = 10_000


def _check(parsed: Parsed) -> Iterator[tuple[str, str]]:
    join = parsed[SHARDED_JOIN]
    if join[TYPE] != "none":
        if not join[ID_PATH]:
            yield f"{SHARDED_JOIN}.{ID_PATH}", "the id path must not be empty"
        if join[ITERATIONS] < 1:
            yield f"{SHARDED_JOIN}.{ITERATIONS}", f"is {join[ITERATIONS]}; expected 1 or more"


SPEC: Final = Spec(
    Kind.INPUT,
    "sequence",
    "Reads inputs one after another.",
    description=(
        "An input is opened when the one before it has ended, and they are read on the driver, in "
        "order, with their processors. How far they were read is in the checkpoint.\n\n"
        "With a `sharded_join` messages that share an identifier become one, in the memory of the "
        "driver: a part of all identifiers in each of the `iterations`, for which everything is "
        "read again. An iteration that was not finished begins anew after a crash. On a stream "
        "without end `window_join` joins."
    ),
    fields=(
        Field(
            SHARDED_JOIN,
            "object",
            "Joins the messages of the inputs by an identifier.",
            advanced=True,
            children=(
                Field(
                    TYPE,
                    "string",
                    "`full-outer` gives every identifier once, when all inputs have been read; "
                    "`outer` gives what is known of an identifier each time that it comes in the "
                    "last input.",
                    default="none",
                    options=("none", "full-outer", "outer", "full-outter", "outter"),
                ),
                Field(
                    ID_PATH,
                    "string",
                    "The path of the identifier, a text, in the messages. Those that have none are "
                    "left out.",
                    access=Access.NONE,
                    default="",
                ),
                Field(
                    ITERATIONS,
                    "int",
                    "In how many parts the identifiers are joined, one after another, so that less "
                    "memory is needed.",
                    default=1,
                ),
                Field(
                    MERGE_STRATEGY,
                    "string",
                    "What becomes of two values of one field: both in an `array`, the new one "
                    "(`replace`) or the old one (`keep`).",
                    default="array",
                    options=("array", "replace", "keep"),
                ),
            ),
        ),
        Field(
            INPUTS,
            "input",
            "The inputs, in order.",
            shape="array",
            check=lambda inputs: None if inputs else "requires at least one child input",
        ),
    ),
    check=_check,
    examples=(
        Example(
            "A message after the last one of a file",
            "input:\n"
            "  sequence:\n"
            "    inputs:\n"
            "      - file: { paths: [ dataset.jsonl ] }\n"
            "      - generate: { count: 1, mapping: 'root.status = \"finished\"' }\n",
        ),
    ),
    begin={"inputs": [{"stdin": {}}]},
    categories=("Utility",),
    runs="children",
    limits="a sharded_join is in the memory of the driver",
)


@dataclass(frozen=True)
class SequenceInput:
    """The input before it is opened.

    Attributes:
        sources: what is read, with its processors; not opened.
        joiner: joins their messages, or None.
    """

    sources: Sequence[Any]
    joiner: Joiner | None

    def opened(self, room: Room) -> Landed:
        """Begin to read; return what has landed.

        Raises:
            StreamerError: the input that is read first cannot be opened.
        """
        store = Store(room.directory, room.spool_limit)
        mark = store.mark or {}
        if mark.get("done"):
            store.close()
        else:
            kind = _Plain if self.joiner is None else _Joined
            reading = kind(self, room, store, mark)
            room.start("sequence", reading.run)
        return Landed(room.directory, inside=not room.local)


class _Plain:
    """Inputs one after another; the mark is the number of the one that is read, and its offset."""

    def __init__(self, of: SequenceInput, room: Room, store: Store, mark: dict[str, Any]) -> None:
        self._of = of
        self._room = room
        self._store = store
        self._lander = Lander(room, store)
        self._number: int = mark.get("number", 0)
        self._at: Offset | None = mark.get("at")
        self._ex = execution(room)
        self._source = self._opened()

    def run(self) -> None:
        """Read to the end of the last one."""
        try:
            while True:
                at = self._source.initial() if self._at is None else self._at
                if not follow(self._room, self._source, at, self._take):
                    return
                self._source.finished()
                self._number, self._at = self._number + 1, None
                done = self._number == len(self._of.sources)
                self._lander.write([], self._mark(done))
                if done:
                    self._store.close()
                    return
                self._source = self._opened()
        except StoppedError:
            return

    def _opened(self) -> Replayable:
        inner = self._room.inner(f"input-{self._number}")
        return opened(self._of.sources[self._number], inner)

    def _take(self, start: Offset, end: Offset) -> bool:
        chunks = chunks_between(self._source, start, end, self._ex)
        records = records_of(batch for chunk in chunks for batch in batches_of(chunk))
        self._at = end
        self._lander.write(records, self._mark(False))
        self._source.committed(end)
        told(self._room, self._ex)
        return False

    def _mark(self, done: bool) -> dict[str, Any]:
        return {"number": self._number, "at": self._at, "done": done}


class _Joined:
    """Inputs that are joined; the mark is the number of the iteration that is next."""

    def __init__(self, of: SequenceInput, room: Room, store: Store, mark: dict[str, Any]) -> None:
        assert of.joiner is not None
        self._of = of
        self._joiner = of.joiner
        self._room = room
        self._store = store
        self._lander = Lander(room, store)
        self._iteration: int = mark.get("iteration", 0)
        self._start: str = f"{mark.get('starts', 0)}"
        self._starts: int = mark.get("starts", 0) + 1
        self._ex = execution(room)
        # What a start that was cut off has received is left alone: this one reads all again.
        self._lander.write([], self._mark())
        self._first: Replayable | None = self._opened(0)

    def run(self) -> None:
        """Read everything as often as there are iterations."""
        try:
            while self._iteration < self._joiner.iterations:
                out: list[Batch] = []
                for number in range(len(self._of.sources)):
                    source, self._first = self._first or self._opened(number), None
                    if not self._read(source, number, out):
                        return
                out += self._joiner.end()
                self._iteration += 1
                for start in range(0, len(out) - _TOGETHER, _TOGETHER):
                    self._lander.write(records_of(out[start : start + _TOGETHER]))
                rest = out[max(0, (len(out) - 1) // _TOGETHER * _TOGETHER) :]
                self._lander.write(records_of(rest), self._mark())
            self._store.close()
        except StoppedError:
            return

    def _read(self, source: Replayable, number: int, out: list[Batch]) -> bool:
        last = number == len(self._of.sources) - 1

        def take(start: Offset, end: Offset) -> bool:
            for chunk in chunks_between(source, start, end, self._ex):
                for batch in batches_of(chunk):
                    out.extend(self._joiner.add(batch, self._iteration, last))
            told(self._room, self._ex)
            return False

        if not follow(self._room, source, source.initial(), take):
            return False
        if self._iteration == self._joiner.iterations - 1:
            source.finished()
        return True

    def _opened(self, number: int) -> Replayable:
        name = f"input-{number}-{self._iteration}-{self._start}"
        return opened(self._of.sources[number], self._room.inner(name))

    def _mark(self) -> dict[str, Any]:
        done = self._iteration == self._joiner.iterations
        return {"iteration": self._iteration, "starts": self._starts, "done": done}


def build(parsed: Parsed, context: BuildContext) -> SequenceInput:
    """Build the inputs; each is opened when its turn comes."""
    join, joiner = parsed[SHARDED_JOIN], None
    if join[TYPE] != "none":
        joiner = Joiner(
            join[ID_PATH],
            MERGES[join[MERGE_STRATEGY]],
            join[ITERATIONS],
            on_last=join[TYPE] in ("outer", "outter"),
        )
    return SequenceInput(context.whole().all(parsed[INPUTS]), joiner)
