"""Tables read by other programs: the same rows, types and partitions as were written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from streamer.config import parse_config
from streamer.connectors.tables.column_types import normalize_schema, parse_column_type
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.driver.writers import make_writers
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.plan import make_plan
from streamer.sdk.output.protocols import encode_batch
from tests.connectors.tables.table_kinds import open_catalog

UTC = UTC
COLUMNS = {
    "dt": "string",
    "n": "bigint",
    "small": "int",
    "share": "double",
    "price": "decimal(10,2)",
    "light": "string",
    "open": "boolean",
    "day": "date",
    "at": "timestamp",
    "tags": "array<string>",
    "place": "struct<x:double,name:string>",
    "counts": "map<string,bigint>",
}
MESSAGES: list[dict[str, Any]] = [
    {
        "dt": f"2026-01-0{number % 3 + 1}",
        "n": number * 10**12,
        "small": -number,
        "share": number / 7,
        "price": f"{number}.25",
        "light": "Grün – 灯" if number % 2 else "",
        "open": number % 2 == 0,
        "day": "2026-01-31",
        "at": f"2026-01-01T10:00:0{number % 10}.123456Z",
        "tags": ["a", "b"][: number % 3],
        "place": {"x": 1.5 * number, "name": "here"},
        "counts": {"k": number},
    }
    for number in range(8)
] + [{"dt": "2026-01-03", "n": -1}]


def wanted_row(message: Mapping[str, Any]) -> dict[str, Any]:
    row = {name: message.get(name) for name in COLUMNS}
    if row["at"] is not None:
        row["at"] = datetime.fromisoformat(message["at"].replace("Z", "+00:00"))
        row["day"] = date.fromisoformat(message["day"])
        row["price"] = Decimal(message["price"])
        row["counts"] = list(message["counts"].items())
    return row


WANTED = sorted(map(wanted_row, MESSAGES), key=lambda row: row["n"])
SCHEMA = normalize_schema(
    pa.schema([(name, parse_column_type(kind)) for name, kind in COLUMNS.items()])
)


def write(directory: Path, output: str) -> None:
    """Write the messages in two micro-batches, as the program does."""
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS.items())
    text = f"output: {{{output.format(d=directory, columns=f'columns: {{{columns}}}')}}}"
    plan = make_plan(parse_config(text, "a.yaml"))
    encoder = plan.context().build(plan.outputs[0]).output
    [writer] = make_writers(plan, directory, None, stream=lambda: "s")
    for batch, some in enumerate((MESSAGES[:5], MESSAGES[5:])):
        messages = [Message.from_value(one) for one in some]
        routed, refused = encode_batch(encoder, messages, Execution(lambda: 0))
        assert not refused
        writer.write(batch, [Frame(FrameKind.DATA, 0, 0, 0, 0, *one) for one in routed])


OUTPUTS = {
    "delta": "delta: {{path: '{d}/table', partition_by: [dt], {columns}}}",
    "iceberg": (
        "iceberg: {{catalog: {{url: 'sqlite:///{d}/catalog.db', warehouse: '{d}/lake'}}, "
        "namespace: demo, table: rows, schema_evolution: {{partition_spec: (dt)}}, {columns}}}"
    ),
    "parquet": "parquet: {{path: '{d}/rows/dt=${{! this.dt }}', {columns}}}",
}


def delta_files(directory: Path) -> list[str]:
    return DeltaTable(f"{directory}/table").file_uris()


def iceberg_files(directory: Path) -> list[str]:
    tasks = open_catalog(directory).load_table("demo.rows").scan().plan_files()
    return [task.file.file_path for task in tasks]


def parquet_files(directory: Path) -> list[str]:
    return sorted(map(str, (directory / "rows").rglob("*.parquet")))


FILES: dict[str, Callable[[Path], list[str]]] = {
    "delta": delta_files,
    "iceberg": iceberg_files,
    "parquet": parquet_files,
}


def duckdb_files(files: list[str]) -> pa.Table:
    duckdb.execute("SET TimeZone = 'UTC'")
    reader = duckdb.execute(
        "SELECT * FROM read_parquet(?, hive_partitioning = true, hive_types = {'dt': 'VARCHAR'}, "
        "union_by_name = true)",
        [files],
    )
    return pa.table(reader.to_arrow_table())


READERS: dict[tuple[str, str], Callable[[Path], pa.Table]] = {
    ("delta", "pyarrow"): lambda d: DeltaTable(f"{d}/table").to_pyarrow_table(),
    ("delta", "polars"): lambda d: polars.read_delta(f"{d}/table").to_arrow(),
    ("delta", "duckdb"): lambda d: duckdb_files(delta_files(d)),
    ("iceberg", "pyarrow"): lambda d: open_catalog(d).load_table("demo.rows").scan().to_arrow(),
    ("iceberg", "polars"): lambda d: (
        polars.scan_iceberg(open_catalog(d).load_table("demo.rows")).collect().to_arrow()
    ),
    ("iceberg", "duckdb"): lambda d: duckdb_files(iceberg_files(d)),
    ("parquet", "pyarrow"): lambda d: ds.dataset(
        f"{d}/rows", partitioning=ds.partitioning(pa.schema([("dt", pa.string())]), flavor="hive")
    ).to_table(),
    ("parquet", "polars"): lambda d: polars.read_parquet(
        f"{d}/rows/**/*.parquet", hive_schema={"dt": polars.String}
    ).to_arrow(),
    ("parquet", "duckdb"): lambda d: duckdb_files(parquet_files(d)),
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_reader_sees_the_same_rows(output: str, tmp_path: Path) -> None:
    write(tmp_path, OUTPUTS[output])
    for (kind, reader), read in READERS.items():
        if kind != output:
            continue
        table = read(tmp_path).select(list(COLUMNS))
        rows = table.to_pylist(maps_as_pydicts=None)
        assert normalize_rows(rows) == WANTED, reader
        types = {one.name: one.type for one in normalize_schema(table.schema)}
        for name in ("n", "small", "share", "price", "light", "open", "day", "dt"):
            assert types[name] == SCHEMA.field(name).type, (reader, name)
        assert pa.types.is_timestamp(types["at"]) and types["at"].tz is not None, reader
    directories = {Path(file).parent.name for file in FILES[output](tmp_path)}
    assert directories == {f"dt=2026-01-0{number}" for number in (1, 2, 3)}


def normalize_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in order, with maps as pairs and times in UTC."""
    for row in rows:
        if row["counts"] is not None:
            row["counts"] = [
                (one["key"], one["value"]) if isinstance(one, dict) else tuple(one)
                for one in row["counts"]
            ]
        if row["at"] is not None:
            row["at"] = row["at"].astimezone(UTC)
    return sorted(rows, key=lambda row: row["n"])
