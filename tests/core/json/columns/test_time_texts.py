from __future__ import annotations

import random

import pyarrow as pa
import pytest

from streamer.core.json.columns.time_texts import read_utc_times
from streamer.core.timestamps import parse_event_time


def make_text(rng: random.Random, size: int) -> str:
    """Return a date-time that may be one, with so many digits of a fraction."""
    year = rng.choice([*range(1700, 2200, 7), 1600, 2199, 2200, 2300, 0, 9999])
    fields = (rng.randrange(14), rng.randrange(33), rng.randrange(25), rng.randrange(61))
    month, day, hour, minute = fields
    text = f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{rng.randrange(62):02d}"
    return text + (f".{rng.randrange(10**size):0{size}d}" if size else "") + "Z"


@pytest.mark.parametrize("size", range(10))
def test_times_that_are_read_are_those_of_each_text(size: int) -> None:
    rng = random.Random(size)
    texts = [make_text(rng, size) for _ in range(400)]
    for place in range(0, 400, 3):
        at = rng.randrange(len(texts[place]))
        texts[place] = (
            texts[place][:at] + rng.choice("0123456789-:.TZtz+ ,") + texts[place][at + 1 :]
        )
    times, are_read = read_utc_times(pa.array(["x", *texts]).slice(1))
    assert 50 < are_read.sum() < 400
    for text, time, is_read in zip(texts, times.tolist(), are_read.tolist(), strict=True):
        if is_read:
            assert time == parse_event_time(text), text


def test_every_day_is_read() -> None:
    texts = [
        f"{year}-{month:02d}-{day:02d}T23:59:59Z"
        for year in (1700, 1900, 1970, 1972, 2000, 2023, 2024, 2100, 2199)
        for month in range(1, 13)
        for day in range(1, 29)
    ]
    times, are_read = read_utc_times(pa.array(texts))
    assert are_read.all()
    assert times.tolist() == list(map(parse_event_time, texts))


def test_texts_of_several_lengths_and_none_are_not_read() -> None:
    assert not read_utc_times(pa.array(["2026-01-01T00:00:05Z", "2026-01-01T00:00:05.5Z"]))[1].any()
    assert len(read_utc_times(pa.array([], pa.string())).times) == 0
