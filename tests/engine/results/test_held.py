"""How much a store of results says that it holds, while its files are compacted and expire."""

from __future__ import annotations

from pathlib import Path

from streamer.core.durations import DAY, MINUTE
from streamer.engine.results.result_store import COMPACT_AFTER_FILES

from .kept import RULES, Row, T, portion, store


def number(n: int, end: int = T) -> bytes:
    return portion([Row("a", end, b'{"n":%d}' % n)])


def test_a_store_tells_its_results_bytes_and_files(tmp_path: Path) -> None:
    kept = store(tmp_path)
    assert kept.measure() == (0, 0, 0)
    kept.write(0, [number(1)], T)
    kept.write(1, [number(2, T + MINUTE)], T)
    held = kept.measure()
    assert (held.rows, held.files) == (2, 2)
    assert held.size == sum(path.stat().st_size for path in tmp_path.rglob("*.parquet"))
    for batch in range(2, COMPACT_AFTER_FILES + 1):
        kept.write(batch, [number(batch, T + batch * MINUTE)], T)
    # One of them is not compacted yet; files that count no more are not counted.
    held = kept.measure()
    assert held.rows == COMPACT_AFTER_FILES + 1 and held.files < COMPACT_AFTER_FILES
    assert kept.removed == 0


def test_what_has_expired_is_counted(tmp_path: Path) -> None:
    kept = store(tmp_path)
    for batch in range(COMPACT_AFTER_FILES + 1):
        kept.write(batch, [number(batch, T + batch * MINUTE)], T)
    assert kept.measure().rows == COMPACT_AFTER_FILES + 1
    later = T + RULES.retention + DAY
    kept.write(COMPACT_AFTER_FILES + 1, [number(99, later)], later)
    assert kept.removed >= COMPACT_AFTER_FILES
    assert kept.measure().rows + kept.removed == COMPACT_AFTER_FILES + 2
