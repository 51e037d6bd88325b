"""Results of a buffer's mappings for many lines at once, read as columns of the fields they name.

Lines that cannot be read so are left for the evaluators of messages. That is decided by the lines
alone, in runs of some hundred, so that all of a run goes the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from streamer.core.json.columns.column_reader import ColumnMode, ColumnReader
from streamer.core.json.columns.field_columns import Columns
from streamer.core.json.columns.line_block import LineRange
from streamer.core.json.columns.time_texts import read_utc_times
from streamer.window.aggregate.accumulator import Accumulator, ValueColumn
from streamer.window.evaluate.column_plan import ColumnPlan, Path
from streamer.window.evaluate.message_slots import (
    NO_EVENT_TIME,
    EvaluatedMessages,
    EventTimeCache,
)
from streamer.window.pack.message_columns import KeyGroups
from streamer.window.settings.int_codec import Ints

_RUN_LINES: Final = 512
_MIN_PARSED_TOGETHER: Final = 128
_MAX_KNOWN_KEYS: Final = 4096


_Run = tuple[int, int, int, int]


class _KnownKeys(NamedTuple):
    """Keys and their groups, so that those of many lines are found without a look at each.

    Attributes:
        texts: the keys.
        groups: their groups.
        resets: how often groups had been forgotten then.
    """

    texts: pa.StringArray
    groups: Ints
    resets: int


class EvaluatedRun(NamedTuple):
    """The results for some lines that follow one another.

    Attributes:
        first: the place of the first line in its range.
        last: the place after the last one.
        messages: event times and groups; None for lines that are to be parsed.
        columns: values for pre-aggregation, by aggregate; None without.
    """

    first: int
    last: int
    messages: EvaluatedMessages | None
    columns: list[ValueColumn] | None


class ColumnEvaluator:
    """Evaluates mappings that name fields."""

    def __init__(
        self,
        plan: ColumnPlan,
        times: EventTimeCache,
        groups: KeyGroups | None,
        accumulators: Sequence[Accumulator] | None,
        mode: ColumnMode,
    ) -> None:
        """Prepare.

        Args:
            plan: the fields.
            times: remembers event times.
            groups: remembers keys; None without.
            accumulators: by aggregate; None where messages are kept whole.
            mode: when columns are read.
        """
        self._plan = plan
        self._times = times
        self._groups = groups
        self._accumulators = accumulators
        self._reader = ColumnReader(plan.paths, mode)
        self._known_keys: _KnownKeys | None = None
        self._has_unsuitable_values = False

    @property
    def is_worthwhile(self) -> bool:
        """Whether most of the lines so far could be read."""
        return self._reader.is_worthwhile and not self._has_unsuitable_values

    @property
    def min_lines(self) -> int:
        """So many lines are evaluated together at least."""
        return self._reader.min_lines

    def evaluate(self, lines: LineRange) -> Iterator[EvaluatedRun] | None:
        """Return the results for lines, in runs that make up all of them.

        Groups are numbered as the runs are taken, in the order in which their keys come.

        Returns:
            None when all lines are to be parsed.
        """
        if not self.is_worthwhile or (columns := self._reader.read(lines)) is None:
            return None
        if not self._is_suitable(columns):
            self._has_unsuitable_values = True
            return None
        path = self._plan.time
        times = None if path is None else self._read_times(columns.texts[path])
        if times is not None and not (good := times != NO_EVENT_TIME).all():
            columns, times = columns.select(good), times[good]
        runs = list(_split_runs(columns.lines - lines.first, len(lines)))
        whole = sum(
            last - first for first, last, start, stop in runs if last - first == stop - start
        )
        if not self._reader.judge(whole / len(lines)):
            return None
        return self._evaluate_runs(runs, columns, times)

    def _evaluate_runs(
        self, runs: list[_Run], columns: Columns, times: Ints | None
    ) -> Iterator[EvaluatedRun]:
        key = self._plan.key
        for first, last, start, stop in runs:
            if stop - start < last - first:
                yield EvaluatedRun(first, last, None, None)
                continue
            of_run = columns.slice(start, stop)
            evaluated = EvaluatedMessages()
            if times is not None:
                evaluated.times = times[start:stop]
            if key is not None:
                evaluated.groups = self._read_groups(of_run.texts[key])
            yield EvaluatedRun(first, last, evaluated, self._make_columns(of_run))

    def _is_suitable(self, columns: Columns) -> bool:
        """Return whether times and keys are texts, and the aggregates take such values."""
        plan, few = self._plan, columns.slice(0, 1)
        texts = all(path is None or path in few.texts for path in (plan.time, plan.key))
        return texts and None not in self._try_columns(few)

    def _read_times(self, texts: pa.StringArray) -> Ints:
        encoded = texts.dictionary_encode()
        distinct = self._parse_times(encoded.dictionary)
        times: Ints = distinct[encoded.indices.to_numpy()]
        return times

    def _parse_times(self, texts: pa.StringArray) -> Ints:
        """Return the time of each text; `NO_EVENT_TIME` for none."""
        if len(texts) < _MIN_PARSED_TOGETHER:
            times = np.array([self._times[text] for text in texts.to_pylist()], np.int64)
        else:
            times, are_read = read_utc_times(texts)
            rest = np.flatnonzero(~are_read)
            others = texts.take(pa.array(rest)).to_pylist()
            times[rest] = [self._times[text] for text in others]
        # Lines without a time are evaluated again, which tells the reason.
        self._times.reasons.clear()
        return times

    def _read_groups(self, texts: pa.StringArray) -> Ints:
        groups = self._groups
        assert groups is not None
        known = self._known_keys
        if known is not None and known.resets == groups.resets:
            # Imported here, for it takes long and every worker imports this module.
            import pyarrow.compute as pc

            places = pc.index_in(texts, value_set=known.texts)
            if not places.null_count:
                known_groups: Ints = known.groups[places.to_numpy()]
                return known_groups
        encoded = texts.dictionary_encode()
        distinct = np.array(groups.groups_of_texts(encoded.dictionary.to_pylist()), np.int64)
        self._known_keys = None
        if len(groups) <= _MAX_KNOWN_KEYS:
            numbers = np.fromiter(groups.values(), np.int64, len(groups))
            with suppress(UnicodeEncodeError):  # a lone surrogate, of a message that was parsed
                known_texts = pa.array(list(groups), pa.string())
                self._known_keys = _KnownKeys(known_texts, numbers, groups.resets)
        result: Ints = distinct[encoded.indices.to_numpy()]
        return result

    def _make_columns(self, columns: Columns) -> list[ValueColumn] | None:
        made = self._try_columns(columns)
        return None if self._accumulators is None else [one for one in made if one is not None]

    def _try_columns(self, columns: Columns) -> list[ValueColumn | None]:
        pairs = zip(self._accumulators or (), self._plan.aggregates, strict=True)
        return [_make_column(accumulator, columns, path) for accumulator, path in pairs]


def _make_column(
    accumulator: Accumulator, columns: Columns, path: Path | None
) -> ValueColumn | None:
    if path is None:
        return accumulator.make_column([])
    if path in columns.texts:
        return accumulator.make_text_column(columns.texts[path])
    numbers: Any = columns.numbers.get(path)
    return None if numbers is None else accumulator.make_number_column(numbers)


def _split_runs(places: Ints, count: int) -> Iterator[_Run]:
    """Split a range of lines where some have no values.

    Args:
        places: of the lines that have values, ascending.
        count: how many lines there are.

    Returns:
        By run, its first line, the one after its last, and the same of the lines with values.
    """
    if len(places) == count:
        yield 0, count, 0, count
        return
    for first in range(0, count, _RUN_LINES):
        last = min(first + _RUN_LINES, count)
        start, stop = np.searchsorted(places, (first, last)).tolist()
        yield first, last, start, stop
