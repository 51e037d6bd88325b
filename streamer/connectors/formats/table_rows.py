"""Rows of lookup tables in files and answers: CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.gocsv import read_csv
from streamer.core.json.parse import parse_json
from streamer.core.lookup_tables import TableRow
from streamer.core.yaml_scalars import parse_bool
from streamer.sdk.lookup_table import TableError
from streamer.sdk.spec import Field

TYPES: Final = "types"
DELIMITER: Final = "delimiter"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def _read_bool(text: str) -> bool:
    value = parse_bool(text)
    if value is None:
        raise ValueError("is no boolean")
    return value


_CONVERTERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "string": str,
    "int": int,
    "float": float,
    "bool": _read_bool,
    "json": lambda text: parse_json(text.encode()),
}


def _check_delimiter(text: str) -> str | None:
    if len(text) == 1 and text not in '"\r\n\0':
        return None
    return f"is {text!r}; expected one letter, such as ; or |"


def _check_types(types: Mapping[str, str]) -> str | None:
    for column, name in types.items():
        if name not in _CONVERTERS:
            return f"has {name!r} for {column}; expected one of {', '.join(_CONVERTERS)}"
    return None


CSV_FIELDS: Final = (
    Field(DELIMITER, "string", "Separator of fields.", default=",", check=_check_delimiter),
    Field(
        TYPES,
        "string",
        "The types of columns that are no texts: `int`, `float`, `bool` or `json`. An empty field "
        "of such a column is null.",
        default={},
        shape="map",
        check=_check_types,
        examples=({"population": "int", "tags": "json"},),
    ),
)


def read_csv_rows(raw: bytes, delimiter: str, types: Mapping[str, str]) -> Iterator[TableRow]:
    """Give an object for each row below the header.

    Raises:
        TableError: it is no CSV, or a field is not of its column's type.
    """
    try:
        records = read_csv(raw.removeprefix(_BYTE_ORDER_MARK), delimiter.encode(), False)
    except QueryError as e:
        raise TableError(f"it is no CSV: {e}") from None
    texts = ([field.decode("utf-8", "surrogateescape") for field in row] for row in records)
    names = next(texts, [])
    if unknown := sorted(types.keys() - set(names)):
        raise TableError(f"types names the column {unknown[0]!r}; it has {', '.join(names)}")
    converters = {
        names.index(column): (_CONVERTERS[kind], kind)
        for column, kind in types.items()
        if kind != "string"
    }
    for number, row in enumerate(texts, 1):
        values: list[Any] = [*row]
        for place, (convert, kind) in converters.items():
            try:
                values[place] = convert(row[place]) if row[place] else None
            except ValueError:
                what = f"row {number}, column {names[place]!r}: {row[place]!r} is no {kind}"
                raise TableError(what) from None
        yield dict(zip(names, values, strict=True))


def read_json_line_rows(raw: bytes) -> Iterator[TableRow]:
    """Give the object of each line; empty lines are none.

    Raises:
        TableError: a line is not a JSON object.
    """
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.strip():
            yield _as_row(_parse(line, f"line {number}"), f"line {number}")


def read_json_array_rows(raw: bytes) -> Iterator[TableRow]:
    """Give the objects of an array.

    Raises:
        TableError: it is no JSON array of objects.
    """
    value = _parse(raw, "the whole")
    if not isinstance(value, list):
        raise TableError(f"it is a JSON {type(value).__name__}; expected an array of objects")
    for number, item in enumerate(value):
        yield _as_row(item, f"item {number}")


def _parse(raw: bytes, what: str) -> Any:
    try:
        return parse_json(raw)
    except ValueError as e:
        raise TableError(f"{what} is no JSON: {e}") from None


def _as_row(value: Any, what: str) -> TableRow:
    if not isinstance(value, dict):
        raise TableError(f"{what} is not a JSON object")
    return value
