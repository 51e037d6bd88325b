"""The figures of a stream whose input or output is not connected: none stands still."""

from __future__ import annotations

from streamer.config import parse_config
from streamer.engine.report.stream_metrics import Snapshot, series_key
from streamer.engine.report.window_history import LAG_METRIC_KEY
from streamer.service.monitoring.exposition import metrics_by_name
from streamer.service.monitoring.outage import adjust_counts_in_outage
from streamer.service.monitoring.stream_view import StreamState, StreamView

KAFKA = series_key("redpanda_lag", {"topic": "t", "partition": "0"})
OTHER = series_key("output_sent", {"path": "root.output"})
COUNTS = {KAFKA: 0, OTHER: 7, LAG_METRIC_KEY: 0.954}
SECOND = 10**9
TEXT = """
input: { label: in, redpanda: { seed_brokers: [ "127.0.0.1:1" ], topics: [ t ] } }
output: { label: out, drop: {} }
"""


def test_what_nobody_knows_in_an_outage_is_absent_and_ages_grow() -> None:
    found = adjust_counts_in_outage(COUNTS, 100 * SECOND, 160 * SECOND, has_outage=True)
    assert found == {OTHER: 7, LAG_METRIC_KEY: 60.0}


def test_an_output_that_is_away_leaves_what_the_input_says() -> None:
    found = adjust_counts_in_outage(COUNTS, 100 * SECOND, 130 * SECOND, has_outage=False)
    assert found == {KAFKA: 0, OTHER: 7, LAG_METRIC_KEY: 30.0}


def test_an_age_does_not_shrink_when_the_clock_is_set_back() -> None:
    assert (
        adjust_counts_in_outage(COUNTS, 100 * SECOND, 0, has_outage=True)[LAG_METRIC_KEY] == 0.954
    )


def view(now: StreamState) -> StreamView:
    made = StreamView(parse_config(TEXT, env={}))
    made.set_running(lambda: now)
    return made


def test_metrics_say_which_end_is_not_connected_and_when_something_was_delivered() -> None:
    place = {"label": "in", "path": "root.input"}
    away = StreamState(
        Snapshot(batch=3), {}, "no broker answers", problem_labels=place, last_delivery=1_700.5
    )
    found = metrics_by_name(view(away))
    assert found['input_connected{label="in",path="root.input"}'] == 0
    assert found['output_connected{label="out",path="root.output"}'] == 1
    assert (found["stream_ready"], found["stream_running"]) == (0, 1)
    assert found["last_delivery_timestamp_seconds"] == 1_700.5
    assert "backlog" not in found
    well = metrics_by_name(
        view(StreamState(Snapshot(batch=3, closed_until=2 * SECOND), {}, backlog=2))
    )
    assert (well["stream_ready"], well["backlog"]) == (1, 2)
    assert "last_delivery_timestamp_seconds" not in well
