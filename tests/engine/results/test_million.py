"""One key among a million windows is found at once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from streamer.core.durations import MINUTE
from streamer.engine.results.query import find_results
from streamer.engine.results.query_model import ResultQuery
from streamer.engine.results.rows import encode_rows

from .kept import T, store

pytestmark = pytest.mark.slow

KEYS, BATCHES = 25_000, 40
MOST_CPU = 0.25
"""Seconds: it takes 0.05 on two quiet cores, and must on slow ones too be far from a scan."""


def test_a_key_is_found_among_a_million_windows(tmp_path: Path) -> None:
    kept = store(tmp_path)
    keys = [f"user-{n:06d}" for n in range(KEYS)]
    written = [f'"{key}"' for key in keys]
    contents = [b'{"n":%d}' % n for n in range(KEYS)]
    none, ordinals = [None] * KEYS, range(KEYS)
    for batch in range(BATCHES):
        end = T + batch * MINUTE
        window = ([end - MINUTE] * KEYS, [end] * KEYS, ["final"] * KEYS)
        columns = (keys, written, none, *window, ordinals, [0] * KEYS, contents, none, none)
        kept.write(batch, [encode_rows(columns)], end)
    now = T + BATCHES * MINUTE

    def cpu(question: ResultQuery, count: int) -> float:
        began = time.process_time()
        assert len(find_results(tmp_path, question, now).results) == count
        return time.process_time() - began

    point = min(cpu(ResultQuery(key=f"user-{n:06d}"), BATCHES) for n in range(5, KEYS, KEYS // 5))
    page = min(cpu(ResultQuery(), 1000) for _ in range(3))
    later = min(
        cpu(ResultQuery(since=T + 20 * MINUTE, until=T + 25 * MINUTE), 1000) for _ in range(3)
    )
    print(f"CPU: one key {point * 1e3:.0f} ms, a page {page * 1e3:.0f} ms, later {later * 1e3:.0f}")
    assert point < MOST_CPU
