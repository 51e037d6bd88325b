"""`metric`: what is counted, set and timed, and that it arrives once where metrics are served."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.engine.report.result_frame import FrameKind, TaskReport
from streamer.engine.report.stream_metrics import Snapshot, StreamMetrics
from streamer.sdk.thread_pool import ComponentPool
from streamer.service.monitoring.exposition import make_exposition, metrics_by_name
from streamer.service.monitoring.stream_view import StreamState, StreamView

from .conftest import Make, Run, messages


def run_in_task(text: str, *payloads: str, task: TaskReport | None = None) -> TaskReport:
    """Run one `metric` over messages, and return the task that it ran in."""
    task = task or TaskReport("DEBUG")
    processor = built(text)
    batch = messages(*payloads)
    assert processor.process(batch, task.execution) == [batch]
    return task


def built(text: str) -> Any:
    config = parse_config(f"pipeline: {{processors: [{{metric: {text}}}]}}", env={})
    return build_context().build(config.processors[0])


def deliver(meters: StreamMetrics, task: TaskReport) -> None:
    for kind, body in task.frames():
        if kind == FrameKind.COUNT:
            meters.add_counts(body)
        elif kind == FrameKind.TIMING:
            meters.add_timings(body)


def shown(meters: StreamMetrics, config: str = "{}") -> dict[str, Any]:
    view = StreamView(parse_config(config, env={}))
    snapshot = Snapshot(0, 0, 0, None, {}, False, 0)
    view.set_running(lambda: StreamState(snapshot, meters.counts, "", meters.times()))
    served = metrics_by_name(view)
    assert make_exposition(view) is not None
    found = {name: value for name, value in served.items() if name.startswith("Foo")}
    # Where the processor is stands beside its own labels.
    assert all(LABEL in name and PATH in name for name in found)
    return {
        name.replace(LABEL, "").replace(PATH, "").replace(",}", "}").replace("{}", ""): value
        for name, value in found.items()
    }


LABEL = 'label="",'
PATH = 'path="root.pipeline.processors.0"'
COUNTER = "{type: counter, name: Foo, labels: {kind: '${! this.k }', name: x}}"
COUNTER_BY = "{type: counter_by, name: Foo, value: '${! this.n }'}"
GAUGE = "{type: gauge, name: Foo, value: '${! this.n }', labels: {by: '${! this.k }'}}"
TIMING = "{type: timing, name: Foo, value: '${! this.n }'}"


def test_a_counter_grows_by_one_for_each_message_by_its_labels() -> None:
    meters = StreamMetrics()
    deliver(meters, run_in_task(COUNTER, '{"k":"a"}', '{"k":"b"}', '{"k":"a"}'))
    assert shown(meters) == {'Foo{kind="a",name="x"}': 2, 'Foo{kind="b",name="x"}': 1}


def test_a_counter_grows_by_numbers_with_and_without_a_fraction() -> None:
    meters = StreamMetrics()
    deliver(meters, run_in_task(COUNTER_BY, '{"n":5}', '{"n":0}', '{"n":2.25}', '{"n":"7"}'))
    assert shown(meters) == {"Foo": 14.25}


def test_a_gauge_has_the_value_that_was_set_last() -> None:
    meters = StreamMetrics()
    task = run_in_task(GAUGE, '{"n":5,"k":"x"}', '{"n":3,"k":"x"}', '{"n":1.5,"k":"y"}')
    deliver(meters, task)
    assert shown(meters) == {'Foo{by="x"}': 3, 'Foo{by="y"}': 1.5}
    deliver(meters, run_in_task(GAUGE, '{"n":4,"k":"x"}'))
    assert shown(meters)['Foo{by="x"}'] == 4


def test_times_are_served_as_quantiles() -> None:
    meters = StreamMetrics()
    deliver(meters, run_in_task(TIMING, *[f'{{"n":{n}000000}}' for n in range(1, 101)]))
    found = shown(meters)["Foo"]
    assert found["p50"] == pytest.approx(50e6, rel=0.05)
    assert found["p99"] == pytest.approx(99e6, rel=0.05)
    text = exposition_text(meters)
    assert f"Foo_count{{{LABEL}{PATH}}} 100.0" in text


def exposition_text(meters: StreamMetrics) -> str:
    view = StreamView(parse_config("{}", env={}))
    snapshot = Snapshot(0, 0, 0, None, {}, False, 0)
    view.set_running(lambda: StreamState(snapshot, meters.counts, "", meters.times()))
    serve = make_exposition(view)
    assert serve is not None
    return serve()[0].decode()


def test_a_task_that_is_tried_again_counts_once() -> None:
    meters = StreamMetrics()
    # The first attempt dies before what it has said is delivered.
    run_in_task(COUNTER_BY, '{"n":5}')
    deliver(meters, run_in_task(COUNTER_BY, '{"n":5}'))
    assert shown(meters) == {"Foo": 5}


def test_what_is_measured_in_threads_is_gathered() -> None:
    task = TaskReport("DEBUG")
    lanes: ComponentPool[Any] = ComponentPool(lambda: built(COUNTER_BY), 3)
    pieces = [messages(f'{{"n":{n}}}') for n in range(10)]
    lanes.map(lambda lane, piece, ex: lane.process(piece, ex), pieces, task.execution)
    meters = StreamMetrics()
    deliver(meters, task)
    assert shown(meters) == {"Foo": 45}


@pytest.mark.parametrize(
    ("text", "payload", "error"),
    [
        (COUNTER_BY, "nope", "Value interpolation error: "),
        (COUNTER_BY, '{"n":"x"}', 'Handler error: strconv.ParseFloat: parsing "x": invalid syntax'),
        (COUNTER_BY, '{"n":-2}', "Handler error: value -2 is negative"),
        (COUNTER_BY, '{"n":-2.5}', "Handler error: value -2.500000 is negative"),
        (TIMING, '{"n":1.5}', 'Handler error: strconv.ParseInt: parsing "1.5": invalid syntax'),
        (TIMING, '{"n":-1}', "Handler error: value is negative"),
        (COUNTER.replace("this.k", "this.k.uppercase()"), "{}", "Handler error: label interpol"),
    ],
)
def test_what_cannot_be_measured_is_logged_and_passes_unmarked(
    text: str, payload: str, error: str, make: Make, a_run: Run
) -> None:
    [[found]] = make(f"metric: {text}").process([Message(payload.encode())], a_run.ex)
    assert found.error is None
    [(level, said)] = a_run.logged
    assert level == "ERROR"
    assert said.startswith(error)
    assert not a_run.ex.custom_metrics.counts and not a_run.ex.custom_metrics.times


def test_an_empty_name_is_refused(make: Make) -> None:
    with pytest.raises(ConfigError, match="must not be empty"):
        make("metric: {type: counter, name: ''}")


WAY = """
pipeline:
  processors:
    - switch:
        - check: this.n % 2 == 0
          processors:
            - { label: even, metric: { type: counter, name: Foo, labels: { kind: even } } }
        - processors:
            - { label: odd, metric: { type: counter_by, name: Foo, value: "2" } }
    - { label: set, metric: { type: gauge, name: Bar, value: "3", labels: { path: own } } }
    - { label: a, metric: { type: gauge, name: Both, value: "4" } }
    - { label: b, metric: { type: counter, name: Both } }
metrics: { mapping: 'root = if this == "Bar" { "Baz" } else { this }', prometheus: {} }
"""


def test_custom_metrics_have_the_place_of_their_processor_and_their_type() -> None:
    config, task, meters = parse_config(WAY, env={}), TaskReport("DEBUG"), StreamMetrics()
    for processor in build_context().build_all(config.processors):
        processor.process(messages('{"n":1}', '{"n":2}', '{"n":4}'), task.execution)
    deliver(meters, task)
    view = StreamView(config)
    snapshot = Snapshot(0, 0, 0, None, {}, False, 0)
    view.set_running(lambda: StreamState(snapshot, meters.counts, "", meters.times()))
    serve = make_exposition(view)
    assert serve is not None
    lines = serve()[0].decode().splitlines()
    inside = "root.pipeline.processors.0.switch"
    for line in (
        f'Foo{{kind="even",label="even",path="{inside}.0.processors.0"}} 2.0',
        f'Foo{{label="odd",path="{inside}.1.processors.0"}} 2.0',
        'Baz{label="set",path="own"} 3.0',
        'Both{label="a",path="root.pipeline.processors.2"} 4.0',
        'Both{label="b",path="root.pipeline.processors.3"} 3.0',
    ):
        assert line in lines
    types = {line for line in lines if line.startswith("# TYPE")}
    # Nobody knows whose metric that is whose place it hides; and one name has one type.
    assert {"# TYPE Foo counter", "# TYPE Baz untyped", "# TYPE Both untyped"} <= types
    assert len(types) == len({line.split()[2] for line in types})
