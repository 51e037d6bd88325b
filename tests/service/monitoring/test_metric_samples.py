"""Metrics in their types and units, and those of a stream among others."""

from __future__ import annotations

from dataclasses import replace

from streamer.components.metrics.metric_names import METRICS
from streamer.config import parse_config
from streamer.engine.report.clock_blame import ClockBlame
from streamer.engine.report.stream_metrics import Snapshot, StreamMetrics
from streamer.service.fleet.lifecycle import LifecycleState
from streamer.service.monitoring.exposition import (
    make_exposition,
    make_fleet_exposition,
    metrics_by_name,
)
from streamer.service.monitoring.metric_samples import STREAM_STATES
from streamer.service.monitoring.stream_view import ManagedState, StreamState, StreamView

WINDOW = "input: { label: in, stdin: {} }\nbuffer: { system_window: { size: 10s } }\n"


def view(text: str = WINDOW, standing: ManagedState | None = None) -> StreamView:
    meters = StreamMetrics(lambda: 0.0)
    for seconds in range(1, 11):
        meters.time("window_close_delay_seconds", {}, seconds * 10**9)
    meters.count("window_closed", {}, 4)
    meters.count("window_dropped", {"reason": "deploy"}, 2)
    meters.count("input_dropped", {"label": "in", "path": "root.input", "reason": "too_long"}, 5)
    meters.set("event_time_lag_seconds", {}, 1.25)
    meters.count("mine", {"a": "b"}, 3)
    shot = Snapshot(dropped={"late": 1, "too_long": 5}, closed=6)
    made = StreamView(parse_config(text, env={}), None if standing is None else lambda: standing)
    now = StreamState(
        shot, meters.counts, "", meters.times(), lambda: {"retention_rows": 3}, backlog=12
    )
    made.set_running(lambda: now)
    return made


def text_of(view: StreamView) -> str:
    serve = make_exposition(view)
    assert serve is not None
    return serve()[0].decode()


def test_metrics_have_the_types_of_the_catalogue_and_benthoss_names() -> None:
    lines = text_of(view()).splitlines()
    kinds = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}
    usual = {"timing": "summary"}
    expected = {name: usual.get(kind, kind) for name, (_, kind, *_) in METRICS.items()}
    assert {name: expected.get(name, "untyped") for name in kinds} == kinds
    assert kinds["input_received"] == "counter" and kinds["mine"] == "untyped"
    assert not [line for line in lines if "_total" in line]


def test_what_was_dropped_is_told_where_it_was_dropped() -> None:
    found = metrics_by_name(view())
    drops = {name: value for name, value in found.items() if "dropped" in name}
    assert drops == {
        'window_dropped{reason="late"}': 1,
        'window_dropped{reason="deploy"}': 2,
        'input_dropped{label="in",path="root.input",reason="too_long"}': 5,
    }
    assert found["window_closed"] == 10


def test_delays_are_histograms_in_seconds_whatever_times_of_components_are() -> None:
    lines = text_of(view()).splitlines()
    assert 'window_close_delay_seconds_bucket{le="5.0"} 5.0' in [
        line.replace('le="5"', 'le="5.0"') for line in lines
    ]
    assert "window_close_delay_seconds_sum 55.0" in lines
    delay = metrics_by_name(view())["window_close_delay_seconds"]
    assert isinstance(delay, dict)
    assert 4.5 < (delay["p50"] or 0) < 5.5


def test_gauges_are_measured_when_they_are_asked_for() -> None:
    found = metrics_by_name(view())
    assert (found["backlog"], found["retention_rows"]) == (12, 3)
    assert found["event_time_lag_seconds"] == 1.25


def test_a_stream_among_others_tells_how_it_stands() -> None:
    config = parse_config(WINDOW, env={})
    made = view("input: { generate: { mapping: '' } }", ManagedState("failed", 2, 7, 1.5))
    serve = make_fleet_exposition(config.metrics, lambda: {"cars": made})
    assert serve is not None
    lines = serve()[0].decode().splitlines()
    assert 'stream_state{state="failed",stream="cars"} 1.0' in lines
    assert 'stream_state{state="running",stream="cars"} 0.0' in lines
    assert 'stream_restarts{stream="cars"} 2.0' in lines
    assert 'stream_revision{stream="cars"} 7.0' in lines
    assert set(STREAM_STATES) == {str(state) for state in LifecycleState}
    assert not [name for name in metrics_by_name(view()) if name.startswith("stream_state")]


def test_an_input_inside_of_another_tells_what_it_has_counted() -> None:
    config = parse_config(
        "input: { broker: { inputs: [ { label: a, stdin: {} }, { label: b, "
        "generate: { mapping: root = 1 } } ] } }",
        env={},
    )
    meters = StreamMetrics()
    meters.count("input_received", {"label": "b", "path": "root.input.broker.inputs.1"}, 5)
    made = StreamView(config)
    made.set_running(lambda: StreamState(Snapshot(8), meters.counts))
    assert {
        name: n for name, n in metrics_by_name(made).items() if name.startswith("input_received")
    } == {
        'input_received{label="",path="root.input"}': 8,
        'input_received{label="a",path="root.input.broker.inputs.0"}': 0,
        'input_received{label="b",path="root.input.broker.inputs.1"}': 5,
    }


LIST = """
input: { stdin: {} }
buffers:
  - { label: hourly, tumbling_window: { timestamp_mapping: root = this.at, size: 1h } }
  - { label: daily, from: hourly, tumbling_window: { size: 24h } }
output: { drop: {} }
"""


def test_figures_of_several_buffers_have_the_label_of_their_buffer() -> None:
    counters = {"dropped": {"late": 3}}
    hour = {"buffer": "hourly", "open": [{"end": 1}], "held": 7, "held_bytes": 70}
    day = {"buffer": "daily", "open": [{"end": 1}, {"end": 2}], "held": 2, "held_bytes": 20}
    statuses = [{"ended": False, "counters": counters, **hour}, {"ended": False, **day}]
    made = StreamView(parse_config(LIST, env={}))
    shot = Snapshot.of(statuses, {}, 4)
    assert shot.open_windows == 3 and shot.held == 9
    made.set_running(lambda: StreamState(shot, {}))
    found = metrics_by_name(made)
    for label, path, windows, messages in (
        ("hourly", "root.buffers.0", 1, 7),
        ("daily", "root.buffers.1", 2, 2),
    ):
        labels = f'label="{label}",path="{path}"'
        assert found[f"window_open{{{labels}}}"] == windows
        assert found[f"window_messages{{{labels}}}"] == messages
        assert found[f"state_bytes{{{labels}}}"] == messages * 10
        assert found[f"window_closed{{{labels}}}"] == 0
    drops = {name: value for name, value in found.items() if "window_dropped" in name}
    assert drops == {'window_dropped{label="hourly",path="root.buffers.0",reason="late"}': 3}
    assert "window_open" not in found


def test_the_source_that_holds_the_clock_back_has_its_figures_in_seconds_and_bytes() -> None:
    shot = Snapshot(clock_source="orders:3", clock_ahead=90_500_000_000)
    blame = ClockBlame(
        *("source", "orders:3", "", 5, 1_700_000_000_250_000_000, 90_500_000_000),
        *(4, 120, 9_000, True),
    )
    held = held_figures(shot, blame)
    labels = '{source="orders:3"}'
    assert held == {
        f"window_clock_held_seconds{labels}": 90.5,
        f"window_clock_held_since_timestamp_seconds{labels}": 1_700_000_000.25,
        f"window_clock_held_windows{labels}": 4,
        f"window_clock_held_messages{labels}": 120,
        f"window_clock_held_bytes{labels}": 9_000,
    }
    unknown_size = held_figures(shot, replace(blame, size=None))
    assert unknown_size[f"window_clock_held_bytes{labels}"] == 0


def test_a_key_is_no_label_and_without_a_holder_there_are_no_figures() -> None:
    blame = ClockBlame("key", "customer 7", "", None, 5, 9, 4, 120, None, True)
    assert held_figures(Snapshot(), blame) == {}
    assert held_figures(Snapshot(), None) == {}


def held_figures(snapshot: Snapshot, blame: ClockBlame | None) -> dict[str, object]:
    made = StreamView(parse_config(WINDOW, env={}))
    blames = {} if blame is None else {"": blame}
    made.set_running(lambda: StreamState(snapshot, {}, clock_blames=blames))
    every = metrics_by_name(made)
    return {name: n for name, n in every.items() if name.startswith("window_clock_held")}
