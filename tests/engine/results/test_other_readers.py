"""Results that are kept, read by other programs from the files that count."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import polars
import pyarrow.parquet as pq

from streamer.core.durations import SECOND
from streamer.engine.results.layout import list_result_files

from .kept import Row, T, contents, portion, store

LATEST = """
SELECT content FROM read_parquet(?)
QUALIFY rank() OVER (
    PARTITION BY key_json, branch, window_start, window_end ORDER BY epoch DESC, ordinal DESC
) = 1
"""


def write_many(directory: Path, batches: int = 40) -> None:
    """Write windows, each with three revisions; some of it is compacted and some is not."""
    kept = store(directory)
    for batch in range(batches):
        rows = [
            Row(
                f"key-{number}",
                T + batch // 3 * 10 * SECOND,
                json.dumps({"batch": batch, "n": number}).encode(),
                emit="changes",
            )
            for number in range(20)
        ]
        kept.write(batch, [portion(rows)], T + batch * SECOND)


def test_other_programs_read_the_results(tmp_path: Path) -> None:
    write_many(tmp_path)
    files = [str(path) for path in list_result_files(tmp_path)]
    # Some are of compaction, and what it has put aside does not count.
    assert {Path(file).parent.name for file in files} == {"files", "new"}
    assert len(files) < len(list(tmp_path.rglob("*.parquet")))
    wanted = sorted(json.dumps(one, sort_keys=True) for one in contents(tmp_path))
    assert len(wanted) == 14 * 20

    def normalize(texts: list[str]) -> list[str]:
        return sorted(json.dumps(json.loads(text), sort_keys=True) for text in texts)

    assert normalize([row[0] for row in duckdb.execute(LATEST, [files]).fetchall()]) == wanted
    frame = polars.read_parquet(files)
    window = ["key_json", "branch", "window_start", "window_end"]
    newest = frame.sort("epoch", "ordinal").group_by(window).agg(polars.col("content").last())
    assert normalize(newest["content"].to_list()) == wanted
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    latest = {
        tuple(row[name] for name in window): row["content"]
        for row in sorted(rows, key=lambda row: (row["epoch"], row["ordinal"]))
    }
    assert normalize([*latest.values()]) == wanted
