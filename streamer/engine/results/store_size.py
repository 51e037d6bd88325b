"""Size of a store of results, for metrics."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq


class StoreSize(NamedTuple):
    """The content of a store: number of results, of files, and bytes."""

    rows: int
    size: int
    files: int


def measure_files(files: Iterable[tuple[Path, int | None]]) -> StoreSize:
    """Return what files hold; one that is compacted meanwhile is left out.

    Args:
        files: their paths, and how many results are in them, where that is known.
    """
    rows = size = number = 0
    for path, known in files:
        with suppress(OSError):
            count = pq.read_metadata(path).num_rows if known is None else known
            size += path.stat().st_size
            rows += count
            number += 1
    return StoreSize(rows, size, number)
