"""Types of the columns of a batch: those of tables, and some that DuckDB has besides.

`json` takes any value as its JSON, `timestamp_ns` a time with all its digits, and `ubigint` and
`hugeint` integers beyond those of `bigint`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from streamer.connectors.tables.column_types import parse_column_type

JSON: Final = pa.json_(pa.string())
TIMESTAMP_NS: Final = pa.timestamp("ns")
UBIGINT: Final = pa.uint64()
HUGEINT: Final = pa.decimal128(38, 0)

_OWN_TYPES: Final[Mapping[str, pa.DataType]] = {
    "json": JSON,
    "timestamp_ns": TIMESTAMP_NS,
    "ubigint": UBIGINT,
    "hugeint": HUGEINT,
}


def parse_batch_column(text: str) -> pa.DataType:
    """Return the type that a text names.

    Raises:
        ValueError: it names none; the text continues "the type …".
    """
    own = _OWN_TYPES.get(text.strip().lower())
    return parse_column_type(text) if own is None else own


def parse_batch_columns(columns: Mapping[str, str]) -> pa.Schema:
    """Return the columns that a config names."""
    return pa.schema([(name, parse_batch_column(text)) for name, text in columns.items()])
