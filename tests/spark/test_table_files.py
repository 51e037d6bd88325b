"""Spark reads the files of tables that other programs of this suite read too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamer.core.durations import SECOND
from streamer.engine.results.layout import list_result_files
from tests.connectors.tables.test_other_readers import COLUMNS, FILES, OUTPUTS, WANTED, write
from tests.engine.results.kept import Row, T, portion, store

pytestmark = pytest.mark.spark

ROOTS = {"delta": "table", "iceberg": "lake/demo/rows/data", "parquet": "rows"}


@pytest.mark.parametrize("output", OUTPUTS)
def test_spark_reads_the_data_files(output: str, tmp_path: Path, session: Any) -> None:
    """The files alone: connectors of Delta and Iceberg come later than a version of Spark."""
    write(tmp_path, OUTPUTS[output])
    frame = (
        session.read.option("basePath", f"{tmp_path}/{ROOTS[output]}")
        .option("mergeSchema", "true")
        .parquet(*FILES[output](tmp_path))
    )
    kinds = {name: kind for name, kind in frame.dtypes if name != "dt"}
    assert kinds == {name: kind for name, kind in COLUMNS.items() if name != "dt"}
    rows = [row.asDict(recursive=True) for row in frame.select(*COLUMNS).collect()]
    rows.sort(key=lambda row: row["n"])
    for row, wanted in zip(rows, WANTED, strict=True):
        assert str(row["dt"]) == wanted["dt"]
        for name in ("n", "small", "share", "price", "light", "open", "day", "tags", "place"):
            assert row[name] == wanted[name], name


def test_spark_reads_the_results_that_are_kept(tmp_path: Path, session: Any) -> None:
    kept = store(tmp_path)
    for batch in range(20):
        kept.write(batch, [portion([Row("a", T + batch * SECOND)])], T + batch * SECOND)
    # Spark has no type for times in nanoseconds.
    session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    try:
        frame = session.read.parquet(*map(str, list_result_files(tmp_path)))
        rows = frame.select("key", "window_end").orderBy("window_end").collect()
    finally:
        session.conf.unset("spark.sql.legacy.parquet.nanosAsLong")
    assert [tuple(row) for row in rows] == [("a", T + batch * SECOND) for batch in range(20)]
