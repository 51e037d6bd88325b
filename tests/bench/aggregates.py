"""Each aggregate of a window by itself: CPU of an event in stage 1, and bytes of state of a key.

Latencies of 100 keys, spread as those of services are: most between 10 and 200 ms. They are
aggregated as a task does it, in this process: a micro-batch is parsed, grouped and encoded. What
the empty mapping takes is taken off, so that what is left is the aggregate's own; `sum` and
`length` stand beside the others. State is what the pack of all groups takes, compressed, by key,
after one micro-batch and after ten have been merged.
"""

from __future__ import annotations

import random
import time
from typing import Final

import numpy as np
import orjson

from streamer.bloblang.analysis.pre_aggregation import PreAggregation, analyze_pre_aggregation
from streamer.window.aggregate.aggregate_codec import decode_aggregates, encode_aggregates
from streamer.window.aggregate.partial_aggregates import (
    PartialAggregates,
    merge_partial_aggregates,
)
from streamer.window.aggregate.pre_aggregator import PreAggregator
from streamer.window.settings.int_codec import Ints
from tests.bench import report

CHUNK: Final = 16_384
KEYS: Final = 100
MICRO_BATCHES: Final = 10

AGGREGATES: Final = {
    "length": 'json("ms").from_all().length()',
    "sum, whole numbers": 'json("ms").from_all().sum()',
    "sum": 'json("exact_ms").from_all().sum()',
    "avg, whole numbers": 'json("ms").from_all().avg()',
    "avg": 'json("exact_ms").from_all().avg()',
    "stddev_samp, whole numbers": 'json("ms").from_all().stddev_samp()',
    "stddev_samp": 'json("exact_ms").from_all().stddev_samp()',
    "max": 'json("ms").from_all().max()',
    "percentile, whole numbers": 'json("ms").from_all().percentile(0.95)',
    "percentile": 'json("exact_ms").from_all().percentile(0.95)',
    "percentile_approx": 'json("exact_ms").from_all().percentile_approx(0.95)',
    "unique, 100,000 users": 'json("user").from_all().unique().length()',
    "approx_count_distinct": 'json("user").from_all().approx_count_distinct()',
    "count_by": 'json("kind").from_all().count_by()',
    "top_k(3)": 'json("ms").from_all().top_k(3)',
    "max_by a field, whole messages": "json().from_all().max_by(e -> e.ms)",
    "index(-1)": 'json("ms").from_all().index(-1)',
    "slice(-100)": 'json("ms").from_all().slice(-100)',
}


def aggregates(events: int) -> None:
    """Print CPU nanoseconds of an event and bytes of state of a key for each aggregate."""
    report.heading(f"aggregates: of a window each, {events:,} events of {KEYS} keys a micro-batch")
    chance = random.Random(1)
    batches = [make_events(chance, events) for _ in range(MICRO_BATCHES)]
    floor = _least_cost("this.key", batches[0])
    for name, expression in AGGREGATES.items():
        cost = _least_cost(expression, batches[0]) - floor
        report.figure(f"{name}: CPU of an event", cost * 1e9 / events, "ns")
        first, merged = state_sizes(expression, batches)
        report.figure(f"{name}: state of a key", first / KEYS, "B")
        report.figure(f"{name}: after {MICRO_BATCHES} micro-batches", merged / KEYS, "B")


def make_events(chance: random.Random, count: int) -> list[bytes]:
    made = []
    for _ in range(count):
        ms = chance.lognormvariate(3.8, 0.7)
        document = {
            "key": chance.randrange(KEYS),
            "ms": round(ms),
            "exact_ms": round(ms, 3),
            "user": f"user-{chance.randrange(100_000)}",
            "kind": chance.choice("abcdefgh"),
        }
        made.append(orjson.dumps(document))
    return made


def _least_cost(expression: str, raws: list[bytes]) -> float:
    """Return the CPU seconds of a micro-batch, the least of three."""
    costs = []
    for _ in range(3):
        began = time.process_time()
        _aggregate(expression, raws, 0)
        costs.append(time.process_time() - began)
    return min(costs)


def state_sizes(expression: str, batches: list[list[bytes]]) -> tuple[int, int]:
    """Return the bytes of all keys' state after the first micro-batch, and after all."""
    start, packs = 0, []
    for raws in batches:
        packs.append(_aggregate(expression, raws, start))
        start += len(raws)
    merged = merge_partial_aggregates([decode_aggregates(pack) for pack in packs])
    return len(packs[0]), len(encode_aggregates(merged)[0])


def _aggregate(expression: str, raws: list[bytes], start: int) -> bytes:
    """Return the pack of a micro-batch's groups."""
    text = f"root = if batch_index() == 0 {{ {expression} }} else {{ deleted() }}"
    found = analyze_pre_aggregation(text)
    assert isinstance(found, PreAggregation), found
    aggregator = PreAggregator(found, None)
    numbers: dict[int, int] = {}
    for first in range(0, len(raws), CHUNK):
        some = raws[first : first + CHUNK]
        docs = list(map(orjson.loads, some))
        groups = [numbers.setdefault(doc["key"], len(numbers)) for doc in docs]
        arrivals: Ints = np.arange(start + first, start + first + len(some))
        columns = aggregator.make_columns(docs)
        aggregator.add(some, np.array(groups), arrivals, [b""], columns)
    names = [str(key).encode() for key in numbers]
    made: PartialAggregates
    [(_, _, made)] = aggregator.flush_groups(1, names, None)
    return encode_aggregates(made)[0]
