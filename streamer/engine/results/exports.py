"""Results as a file: CSV, JSON lines, or Parquet, written page by page within bounds."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final, Protocol

from streamer.core.json.dump import dump_json
from streamer.engine.results.json_cells import to_json_value
from streamer.engine.results.query_model import (
    MAX_RESULTS,
    ResultPage,
    ResultQuery,
    ResultQueryError,
    WindowResult,
)
from streamer.engine.results.sql_query import SqlTable

MAX_EXPORT_RESULTS: Final = 1_000_000
"""How many results a file has at most."""

MAX_EXPORT_BYTES: Final = 64 << 20
"""Bytes after which a file ends."""

EXPORT_TIMEOUT_S: Final = 60.0
"""Seconds after which a file that is not complete ends."""

RESULT_COLUMNS: Final = (
    *("key", "start", "end", "emitted_at", "emit", "revision"),
    *("content", "content_base64", "metadata", "error"),
)
"""The columns of results in CSV."""

ReadPage = Callable[[ResultQuery], ResultPage]


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """The content of a file: how many rows, and whether there are more that it does not have."""

    rows: int
    cut: bool


class _Writer(Protocol):
    def write(self, rows: Sequence[Any]) -> None: ...

    def close(self) -> None: ...


def export_results(
    out: BinaryIO,
    form: str,
    query: ResultQuery,
    read_page: ReadPage,
    now: Callable[[], float] = time.monotonic,
) -> ExportSummary:
    """Write results to a file, until there are no more or a bound is reached.

    Args:
        out: the file.
        form: `csv`, `jsonl` or `parquet`.
        query: which results; its `limit` is how many at most.
        read_page: reads a page.
        now: a clock that never runs backwards, s.

    Raises:
        ResultQueryError: the query is wrong.
    """
    if not 1 <= query.limit <= MAX_EXPORT_RESULTS:
        raise ResultQueryError(f"limit is {query.limit}, expected 1 to {MAX_EXPORT_RESULTS}")
    deadline, left = now() + EXPORT_TIMEOUT_S, query.limit
    writer = _RESULT_WRITERS[form](out)
    while True:
        page = read_page(replace(query, limit=min(left, MAX_RESULTS)))
        writer.write(page.results)
        left -= len(page.results)
        is_over = left == 0 or out.tell() > MAX_EXPORT_BYTES or now() > deadline
        if not page.next or is_over:
            writer.close()
            return ExportSummary(query.limit - left, bool(page.next))
        query = replace(query, after=page.next)


def export_table(out: BinaryIO, form: str, table: SqlTable) -> ExportSummary:
    """Write the answer to a statement of SQL to a file; see `export_results`."""
    rows = [[to_json_value(value) for value in row] for row in table.rows]
    if form == "csv":
        _write_csv(out, table.columns, rows)
    elif form == "jsonl":
        lines = (dump_json(dict(zip(table.columns, row, strict=True))) for row in rows)
        _write_lines(out, lines)
    else:
        _write_parquet_table(out, table)
    return ExportSummary(len(rows), table.cut)


def select_cells(result: WindowResult, columns: Sequence[str]) -> list[Any]:
    """Return a result's values in these columns; a content is its text, or base64 for bytes."""
    plain = result.to_json_values()
    if "content" in plain:
        plain["content"] = result.content.decode()
    elif "content" in columns and "content_base64" not in columns:
        plain["content"] = plain["content_base64"]
    return [plain.get(name) for name in columns]


def format_cell(value: Any) -> str:
    """Return a value as a cell of a table shows it: texts as they are, others as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dump_json(value).decode()


def format_csv_row(values: Iterable[Any]) -> str:
    """Return a row of CSV, without the end of its line."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([format_cell(value) for value in values])
    return text.getvalue()


def _write_csv(out: BinaryIO, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    _write_lines(out, (format_csv_row(row).encode() for row in (columns, *rows)))


def _write_lines(out: BinaryIO, lines: Iterable[bytes]) -> None:
    out.writelines(line + b"\n" for line in lines)


class _CsvWriter:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        _write_csv(out, RESULT_COLUMNS, ())

    def write(self, rows: Sequence[WindowResult]) -> None:
        cells = (select_cells(row, RESULT_COLUMNS) for row in rows)
        _write_lines(self._out, (format_csv_row(row).encode() for row in cells))

    def close(self) -> None:
        pass


class _JsonLinesWriter:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, rows: Sequence[WindowResult]) -> None:
        _write_lines(self._out, (dump_json(row.to_json_values()) for row in rows))

    def close(self) -> None:
        pass


class _ParquetWriter:
    """Times are timestamps in ns, contents that are no text are bytes."""

    def __init__(self, out: BinaryIO) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        time_type = pa.timestamp("ns", "UTC")
        self._schema = pa.schema(
            [
                ("key", pa.string()),
                *((name, time_type) for name in ("start", "end", "emitted_at")),
                ("emit", pa.string()),
                ("revision", pa.int64()),
                *((name, pa.string()) for name in ("content", "metadata", "error")),
                ("content_bytes", pa.binary()),
            ]
        )
        self._writer = pq.ParquetWriter(out, self._schema, compression="zstd")

    def write(self, rows: Sequence[WindowResult]) -> None:
        import pyarrow as pa

        cells = [_parquet_cells(row) for row in rows]
        columns = zip(*cells, strict=True) if cells else [()] * len(self._schema)
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _parquet_cells(row: WindowResult) -> tuple[Any, ...]:
    try:
        text, raw = row.content.decode(), None
    except UnicodeDecodeError:
        text, raw = None, row.content
    [key] = select_cells(row, ("key",))
    shown_key = None if key is None else format_cell(key)
    times = row.start, row.end, row.emitted_at
    return (shown_key, *times, row.emit, row.revision, text, row.metadata, row.error, raw)


def _write_parquet_table(out: BinaryIO, table: SqlTable) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
    arrays = [_parquet_array(column) for column in columns]
    # A statement may give two columns one name.
    names = [
        name if table.columns.index(name) == index else f"{name}_{index}"
        for index, name in enumerate(table.columns)
    ]
    pq.write_table(pa.Table.from_arrays(arrays, names=names), out, compression="zstd")


def _parquet_array(values: Sequence[Any]) -> Any:
    """Return a column: of its own type, or as texts where Parquet has none for all its values."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        texts = (None if one is None else format_cell(to_json_value(one)) for one in values)
        return pa.array(list(texts), pa.string())


_RESULT_WRITERS: Final[Mapping[str, Callable[[BinaryIO], _Writer]]] = {
    "csv": _CsvWriter,
    "jsonl": _JsonLinesWriter,
    "parquet": _ParquetWriter,
}
