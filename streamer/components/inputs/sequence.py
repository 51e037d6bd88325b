"""The `sequence` input: reads inputs one after another, each when the one before it has ended.

They are read on the driver, and what they give goes into the spool together with how far they were
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.spool.driver_reader import (
    batches_of_chunk,
    chunks_between,
    make_execution,
    read_until_end,
    records_of_batches,
    report_stats,
)
from streamer.connectors.spool.sharded_join import MERGES, ShardedJoiner
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import SpoolWriter, StreamStoppedError
from streamer.connectors.spool.store import SpoolStore
from streamer.core.message import Batch
from streamer.sdk.input.input_context import InputContext, open_input
from streamer.sdk.input.replayable import Offset, ReplayableSource
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

INPUTS: Final = "inputs"
SHARDED_JOIN: Final = "sharded_join"
TYPE: Final = "type"
ID_PATH: Final = "id_path"
ITERATIONS: Final = "iterations"
MERGE_STRATEGY: Final = "merge_strategy"

_BLOCK_BATCHES: Final = 10_000


def _check(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
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
        "An input is opened when the one before it has ended, and they are read on the "
        "driver, in order, with their processors. The checkpoint has their positions.\n"
        "\n"
        "With a `sharded_join` messages that share an identifier become one, in the memory of "
        "the driver: a part of all identifiers in each of the `iterations`, for which "
        "everything is read again. An unfinished iteration starts again after a crash. On a "
        "stream without end `window_join` joins."
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
                    "Treatment of two values of one field: both in an `array`, the new one "
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
    joiner: ShardedJoiner | None

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read; return the source of what the spool holds.

        Raises:
            StreamerError: the input that is read first cannot be opened.
        """
        store = SpoolStore.for_input(context)
        mark = store.mark or {}
        if mark.get("done"):
            store.close()
        else:
            kind = _SequentialReader if self.joiner is None else _JoiningReader
            reading = kind(self, context, store, mark)
            context.start("sequence", reading.run)
        return SpoolSource.for_input(context)


class _SequentialReader:
    """Inputs one after another; the mark is the number of the one that is read, and its offset."""

    def __init__(
        self, spec: SequenceInput, context: InputContext, store: SpoolStore, mark: dict[str, Any]
    ) -> None:
        self._of = spec
        self._context = context
        self._store = store
        self._spool_writer = SpoolWriter(context, store)
        self._number: int = mark.get("number", 0)
        self._at: Offset | None = mark.get("at")
        self._ex = make_execution(context)
        self._source = self._open_input()

    def run(self) -> None:
        """Read to the end of the last one."""
        try:
            while True:
                at = self._source.initial_offset() if self._at is None else self._at
                if not read_until_end(self._context, self._source, at, self._take):
                    return
                self._source.on_finished()
                self._number, self._at = self._number + 1, None
                done = self._number == len(self._of.sources)
                self._spool_writer.write([], self._make_mark(done))
                if done:
                    self._store.close()
                    return
                self._source = self._open_input()
        except StreamStoppedError:
            return

    def _open_input(self) -> ReplayableSource:
        inner = self._context.child(f"input-{self._number}")
        return open_input(self._of.sources[self._number], inner)

    def _take(self, start: Offset, end: Offset) -> bool:
        chunks = chunks_between(self._source, start, end, self._ex)
        records = records_of_batches(batch for chunk in chunks for batch in batches_of_chunk(chunk))
        self._at = end
        self._spool_writer.write(records, self._make_mark(False))
        self._source.on_committed(end)
        report_stats(self._context, self._ex)
        return False

    def _make_mark(self, done: bool) -> dict[str, Any]:
        return {"number": self._number, "at": self._at, "done": done}


class _JoiningReader:
    """Inputs that are joined; the mark is the number of the iteration that is next."""

    def __init__(
        self, spec: SequenceInput, context: InputContext, store: SpoolStore, mark: dict[str, Any]
    ) -> None:
        assert spec.joiner is not None
        self._of = spec
        self._joiner = spec.joiner
        self._context = context
        self._store = store
        self._spool_writer = SpoolWriter(context, store)
        self._iteration: int = mark.get("iteration", 0)
        self._start: str = f"{mark.get('starts', 0)}"
        self._starts: int = mark.get("starts", 0) + 1
        self._ex = make_execution(context)
        # What a start that was cut off has received is left alone: this one reads all again.
        self._spool_writer.write([], self._make_mark())
        self._first: ReplayableSource | None = self._open_input(0)

    def run(self) -> None:
        """Read everything as often as there are iterations."""
        try:
            while self._iteration < self._joiner.iterations:
                out: list[Batch] = []
                for number in range(len(self._of.sources)):
                    source, self._first = self._first or self._open_input(number), None
                    if not self._read(source, number, out):
                        return
                out += self._joiner.end()
                self._iteration += 1
                for start in range(0, len(out) - _BLOCK_BATCHES, _BLOCK_BATCHES):
                    self._spool_writer.write(
                        records_of_batches(out[start : start + _BLOCK_BATCHES])
                    )
                rest = out[max(0, (len(out) - 1) // _BLOCK_BATCHES * _BLOCK_BATCHES) :]
                self._spool_writer.write(records_of_batches(rest), self._make_mark())
            self._store.close()
        except StreamStoppedError:
            return

    def _read(self, source: ReplayableSource, number: int, out: list[Batch]) -> bool:
        last = number == len(self._of.sources) - 1

        def take(start: Offset, end: Offset) -> bool:
            for chunk in chunks_between(source, start, end, self._ex):
                for batch in batches_of_chunk(chunk):
                    out.extend(self._joiner.add(batch, self._iteration, last))
            report_stats(self._context, self._ex)
            return False

        if not read_until_end(self._context, source, source.initial_offset(), take):
            return False
        if self._iteration == self._joiner.iterations - 1:
            source.on_finished()
        return True

    def _open_input(self, number: int) -> ReplayableSource:
        name = f"input-{number}-{self._iteration}-{self._start}"
        return open_input(self._of.sources[number], self._context.child(name))

    def _make_mark(self) -> dict[str, Any]:
        done = self._iteration == self._joiner.iterations
        return {"iteration": self._iteration, "starts": self._starts, "done": done}


def build(parsed: ParsedFields, context: BuildContext) -> SequenceInput:
    """Build the inputs; each is opened when its turn comes."""
    join, joiner = parsed[SHARDED_JOIN], None
    if join[TYPE] != "none":
        joiner = ShardedJoiner(
            join[ID_PATH],
            MERGES[join[MERGE_STRATEGY]],
            join[ITERATIONS],
            on_last=join[TYPE] in ("outer", "outter"),
        )
    return SequenceInput(context.with_processors().build_all(parsed[INPUTS]), joiner)
