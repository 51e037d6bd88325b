"""The figures of a stream whose input or output is not connected: none stands still."""

from __future__ import annotations

from streamer.config import parse_config
from streamer.engine.meters import key_of
from streamer.engine.recent import LAG
from streamer.engine.snapshot import Snapshot
from streamer.service.exposition import by_name
from streamer.service.outage import counts_in_trouble
from streamer.service.view import Now, StreamView

KAFKA = key_of("redpanda_lag", {"topic": "t", "partition": "0"})
OTHER = key_of("output_sent", {"path": "root.output"})
COUNTS = {KAFKA: 0, OTHER: 7, LAG: 0.954}
SECOND = 10**9
TEXT = """
input: { label: in, redpanda: { seed_brokers: [ "127.0.0.1:1" ], topics: [ t ] } }
output: { label: out, drop: {} }
"""


def test_what_nobody_knows_in_an_outage_is_absent_and_ages_grow() -> None:
    found = counts_in_trouble(COUNTS, 100 * SECOND, 160 * SECOND, outage=True)
    assert found == {OTHER: 7, LAG: 60.0}


def test_an_output_that_is_away_leaves_what_the_input_says() -> None:
    found = counts_in_trouble(COUNTS, 100 * SECOND, 130 * SECOND, outage=False)
    assert found == {KAFKA: 0, OTHER: 7, LAG: 30.0}


def test_an_age_does_not_shrink_when_the_clock_is_set_back() -> None:
    assert counts_in_trouble(COUNTS, 100 * SECOND, 0, outage=True)[LAG] == 0.954


def view(now: Now) -> StreamView:
    made = StreamView(parse_config(TEXT, env={}))
    made.running(lambda: now)
    return made


def test_metrics_say_which_end_is_not_connected_and_when_something_was_delivered() -> None:
    place = {"label": "in", "path": "root.input"}
    away = Now(Snapshot(batch=3), {}, "no broker answers", place=place, last_delivery=1_700.5)
    found = by_name(view(away))
    assert found['input_connected{label="in",path="root.input"}'] == 0
    assert found['output_connected{label="out",path="root.output"}'] == 1
    assert (found["stream_ready"], found["stream_running"]) == (0, 1)
    assert found["last_delivery_timestamp_seconds"] == 1_700.5
    assert "backlog" not in found
    well = by_name(view(Now(Snapshot(batch=3, closed_until=2 * SECOND), {}, backlog=2)))
    assert (well["stream_ready"], well["backlog"]) == (1, 2)
    assert "last_delivery_timestamp_seconds" not in well
