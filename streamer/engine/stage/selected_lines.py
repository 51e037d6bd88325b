"""Pipelines that begin with a processor which only drops messages: it is given whole lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.stage.task_input import run_chunk
from streamer.sdk.input.replayable import Chunk, LineMessages, RawMessages
from streamer.sdk.processing import InstrumentedBulkProcessor, Processor

if TYPE_CHECKING:  # numpy is not needed by other pipelines
    from streamer.core.json.columns.line_block import LineRange

_LINES_PER_RUN: Final = 4096


def run_chunks(
    processors: Sequence[Processor], chunks: Iterator[Chunk], ex: Execution
) -> Iterator[Batch]:
    """Return what comes out of processors, written as bytes, as `run_chunk` does.

    Lines are read as columns where the first processor only drops messages by their fields.
    """
    first = processors[0] if processors else None
    selecting = isinstance(first, InstrumentedBulkProcessor) and ex.crashes is None
    selector = first.make_line_selector(ex) if selecting else None  # type: ignore[union-attr]
    ex.reads_columns = selector is not None
    for chunk in chunks:
        lines = _lines_of(chunk) if selector is not None and selector.is_worthwhile else None
        if selector is None or lines is None:
            ex.reads_columns = False
            yield from run_chunk(processors, chunk, ex, written=True)
            continue
        assert isinstance(chunk, RawMessages) and isinstance(first, InstrumentedBulkProcessor)
        for start in range(0, len(lines), _LINES_PER_RUN):
            began = ex.elapsed()
            some = lines[start : start + _LINES_PER_RUN]
            runs = list(selector.select(some))
            took = (ex.elapsed() - began) / len(some)
            for run in runs:
                count = len(run.lines)
                if run.kept is None:
                    left = RawMessages(run.lines.to_list(), chunk.meta)
                    yield from run_chunk(processors, left, ex, written=True)
                    continue
                first.count_selected(count, len(run.kept), int(took * count), ex)
                yield from _run_rest(processors[1:], RawMessages(run.kept, chunk.meta), ex)
                if ex.read_counter is not None:
                    ex.read_counter.add(count - len(run.kept))


def _lines_of(chunk: Chunk) -> LineRange | None:
    if isinstance(chunk, LineMessages):
        return chunk.lines
    if not isinstance(chunk, RawMessages):
        return None
    from streamer.core.json.columns.line_block import LineRange

    return LineRange.of_lines(chunk.raws)


def _run_rest(processors: Sequence[Processor], kept: RawMessages, ex: Execution) -> Iterator[Batch]:
    if processors:
        yield from run_chunk(processors, kept, ex, written=True)
        return
    meta = kept.meta
    yield from [[Message(raw, meta)] for raw in kept.raws]
    if ex.read_counter is not None:
        ex.read_counter.add(len(kept))
