"""`parquet`: a lookup table in a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.bloblang.errors import ArgumentError, QueryError
from streamer.bloblang.runtime.parquet_rows import read_rows, row_documents
from streamer.connectors.locations.stores import location_packages
from streamer.connectors.locations.table_file import PATH, PATH_FIELD, REFRESH, TableFile
from streamer.core.lookup_tables import TableRow
from streamer.sdk.lookup_table import (
    TABLE_BEGIN,
    TableError,
    TableLoader,
    table_fields,
    table_problems,
)
from streamer.sdk.spec import BuildContext, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.TABLE,
    "parquet",
    "Looks up rows of a Parquet file.",
    description=(
        "Times are texts as RFC 3339 has them, decimals are texts. See "
        "[lookup tables](../../lookup-tables.md)."
    ),
    fields=(PATH_FIELD, *table_fields(*REFRESH)),
    check=table_problems,
    begin=TABLE_BEGIN,
    requires=location_packages(PATH),
    categories=("Local",),
)


def _read_parquet_rows(raw: bytes) -> Iterator[TableRow]:
    import pyarrow as pa

    try:
        for rows in read_rows(raw):
            yield from row_documents(rows, as_stored=False)
    except (pa.ArrowException, ArgumentError, QueryError) as e:
        raise TableError(f"it is no Parquet file: {e}") from None


def build(parsed: ParsedFields, context: BuildContext) -> TableLoader:
    """Take the file."""
    source = TableFile(parsed[PATH], parsed.permissions, _read_parquet_rows)
    return TableLoader(parsed, source, context)
