"""What is counted and timed of each component: Benthos's names, labels and numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.engine.report.result_frame import FrameKind
from streamer.engine.report.stream_metrics import StreamMetrics

from .stream import Run, write_lines

SECOND = 10**9
T = 1_700_000_000 * SECOND

# Run by Benthos 4.76 as well, whose numbers are below.
WAY = """
input: { label: src, file: { paths: [in] }, processors: [ { mapping: root = this } ] }
buffer: { memory: { batch_policy: { enabled: true, count: 3 } } }
pipeline:
  processors:
    - label: add
      mapping: 'root = this.merge({"m": this.n + 1})'
    - catch:
        - log: { message: '${! error() }' }
    - group_by_value: { value: '${! this.k }' }
    - try:
        - resource: foo
        - noop: {}
    - mapping: 'root = if this.k == "b" { deleted() }'
output: { label: dst, stdout: {}, processors: [ { split: {} } ] }
processor_resources: [ { label: foo, mapping: root = this } ]
"""
# received, batches received, sent, batches sent
COUNTED_BY_BENTHOS = {
    "input.processors.0": (3, 3, 3, 3),
    "pipeline.processors.0": (3, 1, 3, 1),
    "pipeline.processors.1": (3, 1, 3, 1),
    "pipeline.processors.1.catch.0": (1, 1, 1, 1),
    "pipeline.processors.2": (3, 1, 3, 2),
    "pipeline.processors.3": (3, 2, 3, 2),
    "pipeline.processors.4": (3, 2, 2, 1),
    "processor_resources.0": (3, 3, 3, 3),
    "output.processors.0": (2, 1, 2, 2),
}
WINDOW = """
input: { file: { paths: [in] } }
buffer: { system_window: { timestamp_mapping: root = this.at, size: 10s%s } }
pipeline:
  processors:
    - group_by_value: { value: '${! this.k }' }
    - mapping: |
        root = if batch_index() == 0 {
          { "n": batch_size() }
        } else { deleted() }
spark: { shards: 2 }
output_resources: [ { label: rest, drop: {} } ]
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "in"
    path.touch()
    return path


def counted(meters: StreamMetrics, kind: str, path: str) -> tuple[int, ...]:
    return tuple(
        sum(
            number
            for (metric, labels), number in meters.counts.items()
            if metric == f"{kind}_{name}" and dict(labels)["path"] == f"root.{path}"
        )
        for name in ("received", "batch_received", "sent", "batch_sent")
    )


def timed(meters: StreamMetrics, name: str, path: str) -> int:
    """Return how many times were taken of a component."""
    return sum(
        times.count
        for (metric, labels), times in meters.times().items()
        if metric == name and dict(labels)["path"] == f"root.{path}"
    )


def test_components_are_counted_as_benthos_counts_them(source: Path) -> None:
    write_lines(source, [{"n": 1, "k": "a"}, {"n": "x", "k": "b"}, {"n": 3, "k": "a"}])
    run = Run(WAY)
    run.step(T, tries=2)
    meters = run.delivery.metrics
    assert {path: counted(meters, "processor", path) for path in COUNTED_BY_BENTHOS} == (
        COUNTED_BY_BENTHOS
    )
    assert counted(meters, "buffer", "buffer") == (3, 3, 3, 1)
    assert counted(meters, "output", "output") == (0, 0, 2, 2)
    place = {"label": "", "path": "root.buffer.batching", "mechanism": "count"}
    assert meters.counts["batch_created", tuple(sorted(place.items()))] == 1
    added = (("label", "add"), ("path", "root.pipeline.processors.0"))
    assert meters.counts["processor_error", added] == 1
    # Each batch is timed, as far as Benthos times it.
    for path, (_, batches, _, _) in COUNTED_BY_BENTHOS.items():
        assert timed(meters, "processor_latency_ns", path) == batches
    for name, path in (("input", "input"), ("buffer", "buffer"), ("output", "output")):
        assert timed(meters, f"{name}_latency_ns", path) == 1


def test_messages_that_are_processed_together_are_batches_by_themselves(source: Path) -> None:
    write_lines(source, [{"n": n} for n in range(1_000)])
    run = Run(
        "input: { file: { paths: [in] } }\n"
        "pipeline: { processors: [ { mapping: 'root = if this.n % 2 == 0 { this } "
        "else { deleted() }' } ] }\noutput: { drop: {} }\n"
    )
    run.step(T)
    meters = run.delivery.metrics
    assert counted(meters, "processor", "pipeline.processors.0") == (1_000, 1_000, 500, 500)
    assert counted(meters, "output", "output")[2:] == (500, 500)
    assert timed(meters, "processor_latency_ns", "pipeline.processors.0") == 1_000


@pytest.mark.parametrize("more", ["", ", late_output: rest"], ids=["folded", "whole"])
def test_grouped_windows_are_counted_as_if_the_processors_had_grouped_them(
    source: Path, more: str
) -> None:
    at = 1_700_000_001
    write_lines(source, [{"at": at + 10 * (n % 2), "k": n % 5} for n in range(100)])
    run = Run(WINDOW % more)
    assert (run.plan.aggregation.text is None) is bool(more)
    run.step(T, tries=2)
    meters = run.delivery.metrics
    assert counted(meters, "buffer", "buffer") == (100, 100, 0, 0)
    run.step(T + 11 * SECOND, tries=2)
    run.step(T + 21 * SECOND, tries=2)
    assert sum(line["n"] for line in run.printed()) == 100
    received, batches, sent, groups = counted(meters, "processor", "pipeline.processors.0")
    assert (received, sent, groups) == (100, 100, 10)
    # Two windows, each of which may be spread over both shards.
    assert 2 <= batches <= 4
    assert counted(meters, "processor", "pipeline.processors.1") == (100, 10, 10, 10)
    assert counted(meters, "buffer", "buffer") == (100, 100, 100, batches)
    assert counted(meters, "output", "output")[2:] == (10, 10)


def test_a_micro_batch_that_comes_again_is_counted_and_timed_once(source: Path) -> None:
    write_lines(source, [{"n": 1}])
    run = Run(
        "input: { file: { paths: [in] } }\npipeline: { processors: [ { mapping: root = 1 } ] }"
    )
    batch = run.step(T)
    # Its commit failed after it had been delivered.
    run.delivery.deliver(0, run.frames(batch))
    meters = run.delivery.metrics
    assert counted(meters, "processor", "pipeline.processors.0") == (1, 1, 1, 1)
    assert timed(meters, "processor_latency_ns", "pipeline.processors.0") == 1
    assert timed(meters, "input_latency_ns", "input") == 1


def test_a_batch_on_which_a_processor_breaks_down_is_counted_at_its_place(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamer.components.processors.mutation import MutationProcessor

    def broken(*_: object) -> None:
        raise RuntimeError("oh")

    monkeypatch.setattr(MutationProcessor, "_mutate", broken)
    write_lines(source, [{"n": 1}, {"n": 2}])
    run = Run(
        "input: { file: { paths: [in] } }\n"
        "pipeline: { processors: [ { label: m, mutation: root.a = 1 }, "
        "{ mapping: root = error_source_label() } ] }\n"
    )
    run.step(T)
    assert run.printed() == [b"m", b"m"]
    meters = run.delivery.metrics
    assert counted(meters, "processor", "pipeline.processors.0") == (2, 2, 2, 2)
    place = (("label", "m"), ("path", "root.pipeline.processors.0"))
    assert meters.counts["processor_error", place] == 2
    assert run.said("Processor failed: RuntimeError: oh")[0][2]["label"] == "m"


def test_a_message_whose_path_fails_is_not_sent(source: Path, tmp_path: Path) -> None:
    write_lines(source, [{"f": "a"}, {"f": None}])
    text = (
        "input: { file: { paths: [in] } }\noutput: { file: { path: '${! this.f.uppercase() }' } }\n"
    )
    run = Run(text)
    run.step(T)
    assert counted(run.delivery.metrics, "output", "output")[2] == 1


def test_times_travel_apart_from_counts_so_that_a_replay_gives_the_same(source: Path) -> None:
    write_lines(source, [{"n": 1}])
    run = Run(
        "input: { file: { paths: [in] } }\npipeline: { processors: [ { mapping: root = 1 } ] }"
    )
    batch = run.step(T)
    kinds = {frame.kind: frame.body for frame in run.frames(batch)}
    assert b"latency" in kinds[FrameKind.TIMING]
    assert b"latency" not in kinds[FrameKind.COUNT]


def test_a_window_of_a_key_is_a_batch_by_itself(source: Path) -> None:
    write_lines(source, [{"at": 1_700_000_001, "k": n % 5} for n in range(20)])
    run = Run(
        "input: { file: { paths: [in] } }\n"
        "buffer: { tumbling_window: { timestamp_mapping: root = this.at, size: 10s, "
        "key_mapping: root = this.k.string() } }\nspark: { shards: 1 }\n"
    )
    run.step(T)
    run.step(T + 11 * SECOND)
    assert counted(run.delivery.metrics, "buffer", "buffer") == (20, 20, 20, 5)


@pytest.mark.parametrize("window", ["", "buffer: { system_window: { size: 10s } }\n"])
def test_metrics_of_the_config_count_once_when_tasks_are_tried_again(
    source: Path, window: str
) -> None:
    write_lines(source, [{"n": n} for n in range(10)])
    run = Run(
        "input: { file: { paths: [in] } }\n"
        + window
        + "pipeline:\n  processors:\n"
        + "    - metric: { type: counter_by, name: Sum, value: '${! this.n }' }\n"
        + "    - metric: { type: gauge, name: Newest, value: '${! this.n }' }\n"
        + "    - metric: { type: timing, name: Took, value: '${! this.n }' }\n"
    )
    run.step(T, tries=3)
    meters = run.delivery.metrics
    found = {name: number for (name, _), number in meters.counts.items()}
    assert (found["Sum"], found["Newest"]) == (45, 9)
    assert [times.count for (name, _), times in meters.times().items() if name == "Took"] == [10]


@pytest.mark.parametrize("buffer", ["none", "window"])
def test_inputs_inside_of_others_count_what_has_come_through_them(buffer: str) -> None:
    windows = "system_window: { timestamp_mapping: root = this.at, size: 10s }"

    def numbers(count: int) -> str:
        made = f"mapping: root.at = {T // SECOND}, interval: ''"
        return f"generate: {{ count: {count}, {made} }}"

    run = Run(
        "input:\n  broker:\n    inputs:\n"
        f"      - {{ label: x, {numbers(3)} }}\n"
        "      - broker:\n          inputs:\n"
        "            - resource: y\n"
        f"            - {{ label: z, {numbers(3)} }}\n"
        f"input_resources: [ {{ label: y, {numbers(5)} }} ]\n"
        f"buffer: {{ {windows if buffer == 'window' else 'none: {}'} }}\noutput: {{ drop: {{}} }}\n"
    )
    run.step(T, tries=2)
    inner = "input.broker.inputs.1"
    expected = {
        "input.broker.inputs.0": 3,
        inner: 8,
        "input_resources.0": 5,
        f"{inner}.broker.inputs.1": 3,
    }
    counts = run.delivery.metrics.counts
    found = {
        dict(labels)["path"].removeprefix("root."): number
        for (name, labels), number in counts.items()
        if name == "input_received" and labels
    }
    assert found == expected
    assert run.snapshot.messages == 11, "each counts once in all"
