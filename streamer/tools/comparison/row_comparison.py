"""The rows of two programs, matched as multisets, by a key or by their order, and compared.

Equal rows are matched by digests, so that memory is taken for each row's digest and for rows that
differ, and not for those that are equal.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice, zip_longest
from typing import Any, Final, NamedTuple

from streamer.engine.canary.emissions import ResultRow
from streamer.engine.canary.field_differences import (
    MAX_VALUE_CHARS,
    ComparisonRules,
    FieldDifference,
    compare_emissions,
)
from streamer.engine.canary.window_comparison import (
    MAX_SHOWN_DIFFERENCES,
    MAX_SHOWN_FIELDS,
    DifferenceKind,
)

MAX_DIFFERENT_ROWS: Final = 20_000
"""Rows of one program without an equal row of the other that are paired; more are only counted."""

_MAX_CANDIDATES: Final = 200
_NONE: Final[deque[int]] = deque()
_DIGEST_BYTES: Final = 16
_OUTPUT: Final = "output"


class OutputRow(NamedTuple):
    """A row that a program gives to an output.

    Attributes:
        output: the path of the output.
        result: the row.
    """

    output: str
    result: ResultRow


@dataclass(frozen=True, slots=True)
class RowRules:
    """Rules of a comparison of rows.

    Attributes:
        fields: the fields and metadata that matter.
        keys: paths of the fields that name a row, `@name` for metadata; none to match by likeness.
        ordered: whether rows are matched by their place.
        exact_text: whether the same value in another text is a difference.
        error_texts: whether the texts of errors matter; else only whether there is one.
    """

    fields: ComparisonRules = field(default_factory=ComparisonRules)
    keys: tuple[str, ...] = ()
    ordered: bool = False
    exact_text: bool = False
    error_texts: bool = True


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that two programs do not make alike.

    Attributes:
        kind: whether both make it, or only the other one (missing), or only this one (added).
        output: the path of its output.
        key: its key as JSON; empty without keys.
        fields: the fields that differ, some of them.
        field_count: how many there are.
        content: the row's content, cut, where only one program makes it.
    """

    kind: DifferenceKind
    output: str
    key: str
    fields: tuple[FieldDifference, ...] = ()
    field_count: int = 0
    content: str = ""

    def to_document(self) -> dict[str, Any]:
        """Return the difference for JSON."""
        return {
            "kind": str(self.kind),
            "output": self.output,
            "key": self.key or None,
            "fields": [
                {"path": one.path, "other": one.old, "this": one.new} for one in self.fields
            ],
            "field_count": self.field_count,
            "content": self.content or None,
        }


@dataclass(slots=True)
class RowComparison:
    """The outcome of a comparison.

    Attributes:
        other_rows: rows of the other program; `this_rows` of this one.
        equal: pairs of equal rows.
        changed: pairs with fields that differ.
        missing: rows of the other program alone.
        added: rows of this program alone.
        differences: the first of them; all are counted.
    """

    other_rows: int = 0
    this_rows: int = 0
    equal: int = 0
    changed: int = 0
    missing: int = 0
    added: int = 0
    differences: list[RowDifference] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """Whether no row differs."""
        return not self.changed + self.missing + self.added


def compare_rows(
    other: Callable[[], Iterable[OutputRow]],
    this: Callable[[], Iterable[OutputRow]],
    rules: RowRules,
) -> RowComparison:
    """Compare the rows of two programs.

    Args:
        other: gives the rows of the other program, as often as it is called.
        this: those of this program.
        rules: what matters.
    """
    outcome = RowComparison()
    comparer = _RowComparer(rules, outcome)
    if rules.ordered:
        comparer.compare_in_order(other(), this())
        return outcome
    counts: Counter[bytes] = Counter()
    for row in other():
        outcome.other_rows += 1
        counts[comparer.digest(row)] += 1
    rest_here: list[OutputRow] = []
    for row in this():
        outcome.this_rows += 1
        digest = comparer.digest(row)
        if counts[digest] > 0:
            counts[digest] -= 1
            outcome.equal += 1
        elif len(rest_here) < MAX_DIFFERENT_ROWS:
            rest_here.append(row)
        else:
            outcome.added += 1
    rest_there: list[OutputRow] = []
    if +counts:
        for row in other():
            digest = comparer.digest(row)
            if counts[digest] > 0:
                counts[digest] -= 1
                if len(rest_there) < MAX_DIFFERENT_ROWS:
                    rest_there.append(row)
                else:
                    outcome.missing += 1
    comparer.compare_pairs(rest_there, rest_here)
    return outcome


class _RowComparer:
    """Compares rows by rules, and notes what differs."""

    def __init__(self, rules: RowRules, outcome: RowComparison) -> None:
        self._rules = rules
        self._outcome = outcome

    def digest(self, row: OutputRow) -> bytes:
        """Return a digest that is the same for rows without a difference that matters."""
        output, (content, metadata, error) = row
        rules = self._rules
        parts: list[Any] = [output, _normalize_error(error, rules)]
        value = _parse(content)
        if value is not _NO_JSON and (rules.fields.ignored or not rules.exact_text):
            parts.append(_without_ignored("", value, rules.fields))
        else:
            parts.append(None if rules.fields.ignores("content") else content.hex())
        names = json.loads(metadata) if metadata else {}
        parts.append(_kept_metadata(names, rules.fields))
        text = json.dumps(parts, sort_keys=True).encode()
        return blake2b(text, digest_size=_DIGEST_BYTES).digest()

    def compare_in_order(self, other: Iterable[OutputRow], this: Iterable[OutputRow]) -> None:
        """Compare rows place by place."""
        outcome = self._outcome
        for there, here in zip_longest(other, this):
            outcome.other_rows += there is not None
            outcome.this_rows += here is not None
            if there is not None and here is not None:
                self._compare_pair(there, here)
            elif there is not None:
                self._note_single(there, DifferenceKind.MISSING)
            else:
                self._note_single(here, DifferenceKind.ADDED)

    def compare_pairs(self, other: Sequence[OutputRow], this: Sequence[OutputRow]) -> None:
        """Pair rows that have no equal, and compare each pair."""
        for there, here in self._pair_rows(other, this):
            if there is not None and here is not None:
                self._compare_pair(there, here)
            elif there is not None:
                self._note_single(there, DifferenceKind.MISSING)
            elif here is not None:
                self._note_single(here, DifferenceKind.ADDED)

    def _pair_rows(self, other: Sequence[OutputRow], this: Sequence[OutputRow]) -> _Pairs:
        """Pair rows of the same output first, and of what is left then those of any output."""
        pair = _pair_by_key if self._rules.keys else _pair_by_likeness
        rest_there, rest_here = [], []
        for there, here in pair(other, this, self._rules, True):
            if there is not None and here is not None:
                yield there, here
            elif there is not None:
                rest_there.append(there)
            elif here is not None:
                rest_here.append(here)
        yield from pair(rest_there, rest_here, self._rules, False)

    def _compare_pair(self, there: OutputRow, here: OutputRow) -> None:
        if self.digest(there) == self.digest(here):
            self._outcome.equal += 1
            return
        self._outcome.changed += 1
        fields = self._list_fields(there, here)
        key = _show_key(here, self._rules.keys)
        shown = tuple(fields[:MAX_SHOWN_FIELDS])
        self._note(RowDifference(DifferenceKind.CHANGED, here.output, key, shown, len(fields)))

    def _list_fields(self, there: OutputRow, here: OutputRow) -> list[FieldDifference]:
        old, new = there.result, here.result
        if bool(old.error) == bool(new.error) and not self._rules.error_texts:
            new = new._replace(error=old.error)
        if not self._rules.exact_text and _is_same_value(old.content, new.content):
            new = new._replace(content=old.content)
        fields = compare_emissions((old,), (new,), self._rules.fields)
        if there.output != here.output:
            fields.insert(0, FieldDifference(_OUTPUT, there.output, here.output))
        return fields

    def _note_single(self, row: OutputRow | None, kind: DifferenceKind) -> None:
        if row is None:
            return
        if kind == DifferenceKind.MISSING:
            self._outcome.missing += 1
        else:
            self._outcome.added += 1
        text = row.result.content.decode(errors="replace")
        shown = text if len(text) <= MAX_VALUE_CHARS else f"{text[: MAX_VALUE_CHARS - 1]}…"
        key = _show_key(row, self._rules.keys)
        self._note(RowDifference(kind, row.output, key, content=shown))

    def _note(self, difference: RowDifference) -> None:
        if len(self._outcome.differences) < MAX_SHOWN_DIFFERENCES:
            self._outcome.differences.append(difference)


_Pairs = Iterator[tuple[OutputRow | None, OutputRow | None]]


def _pair_by_key(
    other: Sequence[OutputRow], this: Sequence[OutputRow], rules: RowRules, by_output: bool
) -> _Pairs:
    """Pair rows of the same key, in their order."""

    def name(row: OutputRow) -> Hashable:
        return row.output if by_output else "", _show_key(row, rules.keys)

    waiting: dict[Hashable, list[OutputRow]] = defaultdict(list)
    for row in reversed(this):
        waiting[name(row)].append(row)
    for row in other:
        mine = waiting.get(name(row))
        yield row, mine.pop() if mine else None
    for rows in waiting.values():
        yield from ((None, row) for row in reversed(rows))


def _pair_by_likeness(
    other: Sequence[OutputRow], this: Sequence[OutputRow], _: RowRules, by_output: bool
) -> _Pairs:
    """Pair each row with the row which has most fields of the same value.

    Rare values count: of a value that very many rows have, only the first rows are candidates. Rows
    that share no value are paired where both have the same fields, in their order.
    """
    free = dict(enumerate(this))
    index: dict[Hashable, deque[int]] = defaultdict(deque)
    for number, row in free.items():
        for feature in _list_features(row, by_output):
            index[feature].append(number)
    rest: list[OutputRow] = []
    for row in other:
        votes: Counter[int] = Counter()
        for feature in _list_features(row, by_output):
            numbers = index.get(feature, _NONE)
            while numbers and numbers[0] not in free:
                numbers.popleft()
            votes.update(one for one in islice(numbers, _MAX_CANDIDATES) if one in free)
        if votes:
            best = max(votes, key=lambda number: (votes[number], -number))
            yield row, free.pop(best)
        else:
            rest.append(row)
    by_form: dict[Hashable, list[int]] = defaultdict(list)
    for number in sorted(free, reverse=True):
        by_form[_form(free[number], by_output)].append(number)
    for row in rest:
        alike = by_form.get(_form(row, by_output), [])
        yield row, free.pop(alike.pop()) if alike else None
    yield from ((None, row) for row in free.values())


def _list_features(row: OutputRow, by_output: bool) -> list[Hashable]:
    """Return the values of a row, each with its name and perhaps the output."""
    value, output = _parse(row.result.content), row.output if by_output else ""
    if not isinstance(value, dict):
        return [(output, "", row.result.content)]
    return [(output, name, _dump(item)) for name, item in value.items()]


def _form(row: OutputRow, by_output: bool) -> Hashable:
    value = _parse(row.result.content)
    form = frozenset(value) if isinstance(value, dict) else type(value).__name__
    return row.output if by_output else "", form


def _show_key(row: OutputRow, keys: Sequence[str]) -> str:
    """Return the values of a row's keys as JSON; empty without keys."""
    if not keys:
        return ""
    document = _parse(row.result.content)
    metadata = json.loads(row.result.metadata) if row.result.metadata else {}
    values = [
        metadata.get(key[1:]) if key.startswith("@") else _value_at(document, key) for key in keys
    ]
    return _dump(values[0] if len(values) == 1 else values)


def _value_at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


_NO_JSON: Final = object()


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return _NO_JSON


def _is_same_value(one: bytes, other: bytes) -> bool:
    value = _parse(one)
    return value is not _NO_JSON and _dump(value) == _dump_or_empty(_parse(other))


def _dump_or_empty(value: Any) -> str:
    return "" if value is _NO_JSON else _dump(value)


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _normalize_error(error: str | None, rules: RowRules) -> Any:
    if rules.fields.ignores("error"):
        return None
    return error if rules.error_texts else bool(error)


def _without_ignored(path: str, value: Any, rules: ComparisonRules) -> Any:
    if not rules.ignored:
        return value
    if isinstance(value, dict):
        items = ((f"{path}.{name}" if path else name, name, one) for name, one in value.items())
        return {
            name: _without_ignored(place, one, rules)
            for place, name, one in items
            if not rules.ignores(place)
        }
    if isinstance(value, list):
        places = (
            (f"{path}.{number}" if path else str(number), one) for number, one in enumerate(value)
        )
        return [
            _without_ignored(place, one, rules) for place, one in places if not rules.ignores(place)
        ]
    return value


def _kept_metadata(names: Mapping[str, Any], rules: ComparisonRules) -> dict[str, Any]:
    return {
        name: value
        for name, value in names.items()
        if (rules.metadata is None or name in rules.metadata) and not rules.ignores(f"@{name}")
    }
