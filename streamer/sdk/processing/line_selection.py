"""Processors that only drop messages, applied to many lines at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from streamer.core.json.columns.column_reader import ColumnMode, ColumnReader
from streamer.core.json.columns.distinct_documents import make_distinct_documents
from streamer.core.json.columns.line_block import LineRange

_RUN_LINES: Final = 512
_MAX_DISTINCT_SHARE: Final = 1 / 4


class SelectedRun(NamedTuple):
    """Some lines that follow one another.

    Attributes:
        lines: all of them.
        kept: those that are kept; None when each is to be processed as a message.
    """

    lines: LineRange
    kept: list[bytes] | None


class LineSelector:
    """Selects lines by the values of fields.

    Lines that cannot be read as columns, or on which the decision fails, are left to be processed
    as messages.
    """

    def __init__(
        self,
        paths: tuple[tuple[str, ...], ...],
        is_kept: Callable[[Any], bool | None],
        mode: ColumnMode = "auto",
    ) -> None:
        """Prepare.

        Args:
            paths: the fields that decide.
            is_kept: decides for a document that has but these fields; None if it fails.
            mode: when fields are read as columns.
        """
        self._paths = paths
        self._is_kept = is_kept
        self._mode = mode
        self._reader = ColumnReader(paths, mode)

    @property
    def is_worthwhile(self) -> bool:
        """Whether most of the lines so far could be selected so."""
        return self._reader.is_worthwhile

    def select(self, lines: LineRange) -> Iterator[SelectedRun]:
        """Return lines in runs, in their order; together they are all lines."""
        columns = self._reader.read(lines)
        decisions = np.full(len(lines), -1, np.int8)
        if columns is not None and len(columns.lines):
            distinct = make_distinct_documents(columns, self._paths)
            few = distinct is not None and (
                self._mode == "always"
                or len(distinct.documents) <= _MAX_DISTINCT_SHARE * len(lines)
            )
            if distinct is None or not few:
                self._reader.judge(0)
            else:
                results = [self._is_kept(document) for document in distinct.documents]
                by_document = np.array([-1 if one is None else one for one in results], np.int8)
                decisions[columns.lines - lines.first] = by_document[distinct.number]
        yield from self._split(lines, decisions)

    def _split(self, lines: LineRange, decisions: Any) -> Iterator[SelectedRun]:
        unknown = decisions < 0
        if not unknown.any():
            yield SelectedRun(lines, _take(lines, decisions))
            return
        whole = 0
        starts = range(0, len(lines), _RUN_LINES)
        has_unknown = np.logical_or.reduceat(unknown, np.array(starts))
        for start, is_left in zip(starts, has_unknown.tolist(), strict=True):
            run = lines[start : start + _RUN_LINES]
            whole += 0 if is_left else len(run)
            kept = None if is_left else _take(run, decisions[start : start + _RUN_LINES])
            yield SelectedRun(run, kept)
        self._reader.judge(whole / len(lines))


def _take(lines: LineRange, decisions: Any) -> list[bytes]:
    places = np.flatnonzero(decisions > 0)
    if len(places) == len(lines):
        return lines.to_list()
    return lines.take(places)
