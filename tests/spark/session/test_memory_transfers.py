"""What Python hands to the JVM is in no file, which a kill would leave behind with its secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyspark.core.broadcast
import pyspark.core.context
import pytest

pytestmark = pytest.mark.spark


def test_rows_and_large_functions_reach_workers_without_a_file(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **options: object) -> None:
        raise AssertionError(f"a file is made in {options['dir']}")

    for module in (pyspark.core.context, pyspark.core.broadcast):
        monkeypatch.setattr(module, "NamedTemporaryFile", refuse)
    large = b"x" * 3_000_000

    def measure(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sizes = [len(body) + len(large) for body in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(sizes, pa.int64())], ["size"])

    rows = session.createDataFrame(pa.table({"body": [b"a" * 2_000_000, b"b"]}))
    sizes = rows.mapInArrow(measure, "size long").toArrow().column(0).to_pylist()
    assert sorted(sizes) == [3_000_001, 5_000_000]
