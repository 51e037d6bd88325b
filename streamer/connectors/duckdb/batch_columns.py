"""The messages of a batch as columns for a query: those alone that it may use.

Columns are made of values that are parsed already, by the rules of table outputs: a value fits when
nothing of it is lost. A message that is no row is explained, and the others are rows. Where nobody
names the type of a column, the values that most messages have decide it, so that a bad message can
spoil no other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa

from streamer.connectors.duckdb.column_kinds import HUGEINT, JSON, TIMESTAMP_NS, UBIGINT
from streamer.connectors.duckdb.errors import QueryError
from streamer.connectors.duckdb.query_text import QueryText
from streamer.connectors.tables.column_inference import infer_columns
from streamer.connectors.tables.column_values import MisfitError, build_column
from streamer.connectors.tables.rows import MAX_COLUMNS
from streamer.core.errors import MessageError
from streamer.core.json.bulk import documents_of
from streamer.core.json.dump import dump_json
from streamer.core.lazy_batch import LazyBatch
from streamer.core.message import Batch
from streamer.core.timestamps import Timestamp, parse_rfc3339
from streamer.core.value import INT64_MAX, INT64_MIN, UINT64_MAX, Number, UInt

_NONE: Final = type(None)
_PARSE_CHUNK_MESSAGES: Final = 500
_DIGITS: Final = bytes(48 if c in b"0123456789" else 32 for c in range(256))
_LONG_RUN: Final = b"0" * 20
_NUMBERS: Final = (int, UInt, float, Number)
_FLAT_KINDS: Final[Mapping[frozenset[type], pa.DataType]] = {
    frozenset({str}): pa.string(),
    frozenset({float}): pa.float64(),
    frozenset({bool}): pa.bool_(),
}
_NOT_AN_OBJECT: Final = "the message is {}; expected an object, whose fields are columns"
_KIND_NAMES: Final = {list: "an array", str: "a text", _NONE: "null"}
_NO_COLUMN: Final = "\x00"
"""The name of the column that a table has which would have none."""


class BatchColumns(NamedTuple):
    """A batch as a table.

    Attributes:
        rows: a row for each message that is one, in order.
        errors: why the others are none, by their index in the batch.
    """

    rows: pa.RecordBatch
    errors: Mapping[int, str]


class ColumnBuilder:
    """Makes the columns of a query."""

    def __init__(self, text: QueryText, declared: pa.Schema, metadata: Sequence[str]) -> None:
        """Take what the columns are for.

        Args:
            text: the query.
            declared: the columns that there are, where the config names them; else empty.
            metadata: keys of metadata that are columns too.
        """
        self._text = text
        self._declared = declared
        self._metadata = [key for key in metadata if text.uses_field(key)]
        self._is_exact = any(_needs_spelling(one.type) for one in declared)

    def build(self, batch: Batch, skipped: Iterable[int] = ()) -> BatchColumns:
        """Return the columns of a batch.

        Args:
            batch: the messages.
            skipped: the indexes of messages that are no rows, and no errors either.
        """
        errors: dict[int, str] = {}
        documents = _read_objects(batch, errors, self._is_exact)
        absent = {*skipped, *errors}
        if absent:
            places = [index for index in range(len(batch)) if index not in absent]
            documents = [documents[index] for index in places]
        else:
            places = list(range(len(batch)))
        misfits: dict[int, str] = {}
        names, arrays = self._build_fields(documents, misfits)
        for key in self._metadata:
            values = [batch[index].meta.get(key) for index in places]
            if key in names:
                at = names.index(key)
                del names[at], arrays[at]
            names.append(key)
            arrays.append(_build_inferred(key, values, misfits))
        if not names:
            names, arrays = [_NO_COLUMN], [pa.nulls(len(places))]
        rows = pa.RecordBatch.from_arrays(arrays, names=names)
        if misfits:
            errors |= {places[at]: text for at, text in misfits.items()}
            kept = [at for at in range(len(places)) if at not in misfits]
            rows = rows.take(pa.array(kept, pa.int64()))
        return BatchColumns(rows, errors)

    def empty_rows(self) -> pa.RecordBatch:
        """Return the declared columns without rows."""
        fields = [*self._declared, *(pa.field(key, pa.string()) for key in self._metadata)]
        schema = pa.schema(fields or [pa.field(_NO_COLUMN, pa.null())])
        arrays = [_build_declared(one.name, one.type, (), {}) for one in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _build_fields(
        self, documents: Sequence[dict[str, Any]], misfits: dict[int, str]
    ) -> tuple[list[str], list[pa.Array]]:
        if len(self._declared):
            fields = [one for one in self._declared if self._text.uses_field(one.name)]
            arrays = [
                _build_declared(
                    one.name, one.type, [doc.get(one.name) for doc in documents], misfits
                )
                for one in fields
            ]
            return [one.name for one in fields], arrays
        names = self._choose_names(documents, misfits)
        columns = [
            _build_inferred(name, [doc.get(name) for doc in documents], misfits) for name in names
        ]
        return names, columns

    def _choose_names(
        self, documents: Sequence[dict[str, Any]], misfits: dict[int, str]
    ) -> list[str]:
        """Return the fields that are columns, in the order in which they come."""
        seen: dict[str, None] = {}
        known: set[str] = set()
        for document in documents:
            if not known.issuperset(document):
                seen.update(dict.fromkeys(document))
                known.update(document)
        used = [name for name in seen if self._text.uses_field(name)]
        spellings: dict[str, list[str]] = {}
        for name in used:
            spellings.setdefault(name.lower(), []).append(name)
        if len(spellings) < len(used):
            used = _choose_spellings(documents, spellings, misfits)
        if len(used) > MAX_COLUMNS:
            kept = set(used[:MAX_COLUMNS])
            for at, document in enumerate(documents):
                if any(name not in kept for name in document):
                    misfits.setdefault(at, f"the batch would get over {MAX_COLUMNS} columns")
            used = used[:MAX_COLUMNS]
        return used


def build_table(label: str, documents: Iterable[dict[str, Any]]) -> pa.Table:
    """Return the rows of a lookup table as columns.

    Raises:
        QueryError: the values of a column contradict each other.
    """
    rows = list(documents)
    misfits: dict[int, str] = {}
    names = list(dict.fromkeys(name for row in rows for name in row))
    arrays = [_build_inferred(name, [row.get(name) for row in rows], misfits) for name in names]
    for at, text in misfits.items():
        raise QueryError(f"row {at + 1} of the table {label} does not fit the others: {text}")
    return pa.table(arrays, names=names)


def _needs_spelling(kind: pa.DataType) -> bool:
    """Return whether the values of a column may have more digits of a number than a float has."""
    if kind == JSON or pa.types.is_decimal(kind):
        return True
    return any(_needs_spelling(kind.field(at).type) for at in range(kind.num_fields))


def _parse_values(batch: Batch) -> list[Any]:
    """Return the values in payloads, by a parser that drops how numbers are spelled.

    To a column 12.50 is 12.5. Searching all payloads for such numbers, as messages need it, takes
    longer than parsing them. Of an integer of 20 digits or more, though, digits would be lost.

    Raises:
        ValueError: a payload is no JSON, or that parser does not do.
    """
    if isinstance(batch, LazyBatch) and batch.content is not None:
        raise ValueError("the payloads are parsed already")
    documents: list[Any] = []
    for start in range(0, len(batch), _PARSE_CHUNK_MESSAGES):
        # The slots are used as they are: this is the inside of a loop over all messages.
        raws = [message._raw or b"" for message in batch[start : start + _PARSE_CHUNK_MESSAGES]]
        if _LONG_RUN in b",".join(raws).translate(_DIGITS):
            raise ValueError("an integer has too many digits")
        documents += map(orjson.loads, raws)
    return documents


def _read_objects(batch: Batch, errors: dict[int, str], is_exact: bool) -> list[Any]:
    """Return the objects in messages; what is none is an error, and an empty object here."""
    try:
        is_parsed = batch[0].has_doc() if batch else True
        if is_exact or is_parsed:
            documents = documents_of(batch, keep=False)
        else:
            try:
                documents = _parse_values(batch)
            except ValueError:
                documents = documents_of(batch, keep=False)
    except (ValueError, MessageError):
        documents = []
        for index, message in enumerate(batch):
            try:
                documents.append(message.doc)
            except MessageError as error:
                errors[index] = str(error)
                documents.append({})
    if set(map(type, documents)) - {dict}:
        for index, document in enumerate(documents):
            if not isinstance(document, dict):
                kind = _KIND_NAMES.get(type(document), "no object")
                errors[index] = _NOT_AN_OBJECT.format(kind)
                documents[index] = {}
    return documents


def _choose_spellings(
    documents: Sequence[dict[str, Any]],
    spellings: Mapping[str, Sequence[str]],
    misfits: dict[int, str],
) -> list[str]:
    """Return one spelling of each name: SQL does not tell capital letters from small ones."""
    kept: list[str] = []
    for names in spellings.values():
        if len(names) == 1:
            kept += names
            continue
        counts = {name: sum(name in document for document in documents) for name in names}
        best = max(names, key=lambda name: counts[name])
        kept.append(best)
        for at, document in enumerate(documents):
            for name in names:
                if name != best and name in document:
                    text = f"the field {name} has the column of {best}, which most messages have"
                    misfits.setdefault(at, text)
    return kept


def _build_declared(
    name: str, kind: pa.DataType, values: Sequence[Any], misfits: dict[int, str]
) -> pa.Array:
    if kind == JSON:
        texts = [None if value is None else dump_json(value).decode() for value in values]
        return pa.ExtensionArray.from_storage(kind, pa.array(texts, pa.string()))
    if kind == TIMESTAMP_NS:
        return pa.array(_fit_each(name, values, _fit_time_ns, misfits), pa.int64()).cast(kind)
    if kind == UBIGINT:
        return pa.array(_fit_each(name, values, _fit_ubigint, misfits), kind)
    array, errors = build_column(values, kind)
    _note_misfits(name, errors, misfits)
    return array


def _fit_each(
    name: str, values: Sequence[Any], fit: Any, misfits: dict[int, str]
) -> list[int | None]:
    fitted: list[int | None] = []
    for at, value in enumerate(values):
        made = None if value is None else fit(value)
        if made is None and value is not None:
            shown = dump_json(value).decode("utf-8", "replace")[:60]
            misfits.setdefault(at, f"the field {name} is {shown}, which does not fit its column")
        fitted.append(made)
    return fitted


def _fit_time_ns(value: Any) -> int | None:
    if isinstance(value, Timestamp):
        ns = value.ns
    elif isinstance(value, str):
        try:
            ns = parse_rfc3339(value).ns
        except ValueError:
            return None
    else:
        return None
    return ns if INT64_MIN < ns <= INT64_MAX else None


def _fit_ubigint(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number: int | float = value
    if isinstance(value, Number) and value.text.isdecimal():
        number = int(value.text)
    if isinstance(number, float):
        if not number.is_integer():
            return None
        number = int(number)
    return number if 0 <= number <= UINT64_MAX else None


def _note_misfits(name: str, errors: Mapping[int, MisfitError], misfits: dict[int, str]) -> None:
    for at, error in errors.items():
        text = str(error)
        misfits.setdefault(at, f"the field {name}{'' if text.startswith('.') else ' '}{text}")


def _build_inferred(name: str, values: Sequence[Any], misfits: dict[int, str]) -> pa.Array:
    kinds = set(map(type, values))
    kinds.discard(_NONE)
    if not kinds:
        return pa.nulls(len(values))
    kind = _FLAT_KINDS.get(frozenset(kinds))
    if kind is None and kinds <= {int, UInt}:
        kind = _choose_integer(values)
    if kind is None:
        kind = _infer_kind(name, values, kinds)
    return _build_declared(name, kind, values, misfits)


def _choose_integer(values: Sequence[Any]) -> pa.DataType:
    """Return the smallest type of integers that has all of these values."""
    there = [value for value in values if value is not None]
    least, most = min(there), max(there)
    if least >= INT64_MIN and most <= INT64_MAX:
        return pa.int64()
    return UBIGINT if least >= 0 and most <= UINT64_MAX else HUGEINT


def _infer_kind(name: str, values: Sequence[Any], kinds: set[type]) -> pa.DataType:
    """Return the type of a column by the values of one sort that most messages have."""
    sorts = {kind: _NUMBERS if kind in _NUMBERS else (kind,) for kind in kinds}
    if len(set(sorts.values())) > 1:
        counts = Counter(map(type, values))
        totals: dict[tuple[type, ...], int] = {}
        for kind, sort in sorts.items():
            totals[sort] = totals.get(sort, 0) + counts[kind]
        first = {sort: _first_place(values, sort) for sort in totals}
        best = max(totals, key=lambda sort: (totals[sort], -first[sort]))
        values = [value for value in values if type(value) in best]
    if all(
        isinstance(value, int) and not isinstance(value, bool) or _is_whole(value)
        for value in values
        if value is not None
    ):
        return _choose_integer(
            [int(value.text) if isinstance(value, Number) else value for value in values]
        )
    inferred = infer_columns(({name: value} for value in values), ())
    # Empty objects and arrays say nothing of what is in them.
    return inferred.get(name, JSON)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Number) and value.text.lstrip("-").isdecimal()


def _first_place(values: Sequence[Any], sort: tuple[type, ...]) -> int:
    return next(at for at, value in enumerate(values) if type(value) in sort)
