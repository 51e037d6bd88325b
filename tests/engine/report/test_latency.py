"""Times, counted in buckets: quantiles of late, sums since the start, and what is added up."""

from __future__ import annotations

import pytest

from streamer.core.component_stats import MAX_FINE_STEPS, ComponentStats, bucket_middle, bucket_of
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.report.latency import LatencyHistogram, LatencySnapshot
from streamer.engine.report.stream_metrics import StreamMetrics
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing import instrument
from streamer.sdk.spec import Kind, ParsedComponent


@pytest.mark.parametrize("ns", [16, 17, 31, 32, 999, 4_096, 123_456, 10**9, 10**12 + 1])
def test_a_bucket_stands_for_its_times_to_three_hundredths(ns: int) -> None:
    assert bucket_middle(bucket_of(ns)) == pytest.approx(ns, rel=0.033)


def test_times_too_short_to_tell_apart_share_buckets() -> None:
    assert {bucket_of(ns) for ns in range(17)} == {bucket_of(16)}


def test_batches_that_were_timed_together_share_their_time_equally() -> None:
    tally = ComponentStats()
    tally.add_latency(64_000, 64)
    assert (tally.elapsed, tally.buckets) == (64_000, {bucket_of(1_000): 64})


def test_times_of_single_batches_are_sorted_into_buckets_and_few_are_kept_apart() -> None:
    ex = Execution(lambda: 0, elapsed=iter(range(0, 10**9, 1_000)).__next__)
    processor = instrument(_Same(), ComponentRef(ParsedComponent(Kind.PROCESSOR, "x", path="p")))
    for _ in range(100):
        processor.process([Message(b"")], ex)
    tally = ex.stats_of(("processor", "", "root.p"))
    assert (tally.batches_sent, tally.elapsed) == (100, 100_000)
    [bucket] = tally.buckets
    assert tally.buckets == {bucket: 100} and bucket_middle(bucket) == pytest.approx(
        1_000, rel=0.07
    )
    clock = iter([at for n in range(2 * MAX_FINE_STEPS) for at in (0, n << 10)])
    ex = Execution(lambda: 0, elapsed=clock.__next__)
    for _ in range(2 * MAX_FINE_STEPS):
        processor.process([Message(b"")], ex)
        assert len(ex.stats_of(("processor", "", "root.p")).fine) <= MAX_FINE_STEPS
    assert sum(ex.stats_of(("processor", "", "root.p")).buckets.values()) == 2 * MAX_FINE_STEPS


class _Same:
    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        return [batch]


def test_quantiles_are_those_of_the_last_ten_minutes_and_sums_those_of_all_time() -> None:
    timing = LatencyHistogram()
    timing.add(1_000_000, [(bucket_of(1_000), 1_000)], now=0.0)
    assert timing.times(599.0).quantile(0.99) == pytest.approx(1_000, rel=0.04)
    timing.add(9_000_000, [(bucket_of(9_000), 1_000)], now=590.0)
    times = timing.times(650.0)
    assert times.quantile(0.01) == pytest.approx(9_000, rel=0.04)
    assert (times.count, times.total) == (2_000, 10_000_000)
    assert timing.times(2_000.0).quantile(0.5) is None


def test_what_was_timed_since_is_what_is_shown_after_a_flush() -> None:
    timing = LatencyHistogram()
    timing.add(1_000, [(bucket_of(1_000), 1)], now=0.0)
    before = timing.times(0.0)
    timing.add(9_000, [(bucket_of(9_000), 1)], now=0.0)
    since = timing.times(0.0).since(before)
    assert (since.count, since.total) == (1, 9_000)
    assert since.quantile(0.0) == since.quantile(1.0) == bucket_middle(bucket_of(9_000))


def test_nothing_timed_has_no_quantiles() -> None:
    assert LatencySnapshot().percentiles() == {"p50": None, "p90": None, "p99": None}


def test_frames_of_several_tasks_add_up() -> None:
    meters = StreamMetrics(lambda: 0.0)
    body = b'[["x_latency_ns", 3000, {"%d": 3}, {"path": "p"}]]' % bucket_of(1_000)
    for _ in range(2):
        meters.add_timings(body)
        assert meters.add_counts(b'[["x_sent", 5, {"path": "p"}], ["y", 1, {}]]') == {
            "x_sent": 5,
            "y": 1,
        }
    times = meters.times()["x_latency_ns", (("path", "p"),)]
    assert (times.count, times.total) == (6, 6_000)
    assert meters.counts["x_sent", (("path", "p"),)] == 10
