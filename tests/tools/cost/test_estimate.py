"""Estimates of a stream's cost, against the stream itself."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from streamer.config.load import parse_config
from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import Plan, make_plan
from streamer.tools.cost.cost_model import estimate_cpu, pace_live
from streamer.tools.cost.estimate import CostReport, estimate_stream
from streamer.tools.cost.machine_speed import measure_slowness
from streamer.tools.cost.measure import SampleCost
from streamer.tools.cost.report_text import format_report
from streamer.tools.cost.sample_facts import count_keys
from streamer.tools.cost.sample_inputs import read_samples

TIME = "timestamp_mapping: root = this.t"
KEYED = "key_mapping: root = this.k"
WHOLE = 'root.all = json("v").from_all()\nroot = if batch_index() > 0 { deleted() }'


def make_stream(buffer: str, mapping: str = WHOLE) -> Plan:
    pipeline = json.dumps({"processors": [{"mapping": mapping}]})
    text = f"buffer:\n  {buffer}\npipeline: {pipeline}\nspark: {{shards: 2}}\n"
    return make_plan(parse_config(text), level="OFF")


def make_messages(count: int, keys: int = 20, seed: int = 7) -> list[Message]:
    rng = random.Random(seed)
    return [
        Message.from_value({"t": n, "k": rng.randrange(keys), "v": rng.random()})
        for n in range(count)
    ]


def measure_peak(plan: Plan, count: int) -> int:
    """Return the largest number of bytes that a stream ever keeps."""
    stream = ScriptedStream(plan, max_shards=2)
    peak = 0
    messages = make_messages(count)
    for first in range(0, count, 500):
        some = [ScriptedMessage(one) for one in messages[first : first + 500]]
        stream.run_micro_batch((first + 1) * 10**9, some)
        kept = sum(len(value) for store in stream.stores for value in store.values.values())
        peak = max(peak, kept)
    return peak


@pytest.mark.parametrize(
    "buffer",
    [
        f"tumbling_window: {{{TIME}, {KEYED}, size: 1h, allowed_lateness: 10m}}",
        f"hopping_window: {{{TIME}, {KEYED}, size: 1h, every: 15m}}",
        f"session_window: {{{TIME}, {KEYED}, gap: 10m, max_duration: 1h}}",
    ],
)
def test_the_state_is_estimated_within_a_factor_of_two(buffer: str) -> None:
    plan = make_stream(buffer)

    report = estimate_stream(plan, [[one] for one in make_messages(6_000)])

    peak = measure_peak(plan, 9_000)
    assert peak / 2 <= report.usual.state_bytes <= peak * 2
    assert report.rate == pytest.approx(1, rel=0.01)
    assert report.facts.keys.seen == 20
    assert report.backlog.cpu_seconds > 1


@pytest.mark.parametrize(
    ("buffer", "warning"),
    [
        (f"session_window: {{{TIME}, {KEYED}, gap: 1m}}", "no largest duration"),
        (f"count_window: {{{KEYED}, count: 5}}", "that is silent stays open"),
        (
            f"tumbling_window: {{{TIME}, {KEYED}, size: 1m, clock_scope: key}}",
            "the clock of each key is kept for 168h",
        ),
        (
            f"hopping_window: {{{TIME}, {KEYED}, size: 1h, every: 30s}}",
            "each message is in 120 windows",
        ),
    ],
)
def test_what_has_no_bound_is_named(buffer: str, warning: str) -> None:
    report = estimate_stream(make_stream(buffer), [[one] for one in make_messages(300)])
    assert any(warning in one for one in report.warnings), report.warnings
    assert any(warning in line for line in format_report(report))


def test_keys_that_keep_coming_are_named() -> None:
    plan = make_stream(f"tumbling_window: {{{TIME}, key_mapping: root = this.t, size: 1m}}")
    report = estimate_stream(plan, [[one] for one in make_messages(300)])
    assert any("keys may have no bound" in one for one in report.warnings)


def test_windows_without_a_key_are_advised_to_have_one() -> None:
    plan = make_stream(f"tumbling_window: {{{TIME}, size: 1h, allowed_lateness: 3h}}")
    advice = " ".join(estimate_stream(plan, [[one] for one in make_messages(300)]).advice)
    assert "one of 2 shards does all" in advice
    assert "allowed_lateness is longer than the window" in advice
    assert "windows keep whole messages" in advice


BUFFERS = """
buffers:
  - label: short
    tumbling_window: {timestamp_mapping: root = this.t, key_mapping: root = this.k, size: 1m}
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 { {"k": this.k, "n": batch_size()} } else { deleted() }
  - label: long
    from: short
    tumbling_window: {key_mapping: root = this.k, size: 1h}
    pipeline:
      processors:
        - mapping: 'root = if batch_index() == 0 { {"n": json("n").from_all().sum()} }'
spark: {shards: 2}
"""


def test_each_of_several_buffers_has_its_state() -> None:
    plan = make_plan(parse_config(BUFFERS), level="OFF")

    report = estimate_stream(plan, [[one] for one in make_messages(4_000)])

    short, long = report.usual.by_buffer["short"], report.usual.by_buffer["long"]
    assert short.held == pytest.approx(60, rel=0.1)
    # 20 keys have a result of each minute, and 60 of these are in an hour.
    assert long.held == pytest.approx(20 * 60, rel=0.2)
    lines = "\n".join(format_report(report))
    assert "short: " in lines and "long: 2 of 2 get messages" in lines


JOIN = """
input:
  broker:
    inputs:
      - {label: a, file: {paths: [a.jsonl]}}
      - {label: b, file: {paths: [b.jsonl]}}
buffer:
  BUFFER
spark: {shards: 2}
"""


def read_join(buffer: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> CostReport:
    monkeypatch.chdir(directory)
    for seed, name in enumerate("ab"):
        lines = (one.raw.decode() for one in make_messages(2_000, 100, seed))
        Path(f"{name}.jsonl").write_text("\n".join(lines))
    plan = make_plan(parse_config(JOIN.replace("BUFFER", buffer)), level="OFF")
    return estimate_stream(plan, read_samples(plan, ("b=a.jsonl",), 3_000))


def test_both_sides_of_a_join_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = f"window_join: {{left: a, right: b, {TIME}, {KEYED}, within: 90s}}"
    report = read_join(buffer, tmp_path, monkeypatch)
    assert report.rate == pytest.approx(2, rel=0.01)
    assert report.usual.held == pytest.approx(180, rel=0.1)


def test_a_table_of_a_join_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = read_join(f"table_join: {{stream: a, table: b, {KEYED}}}", tmp_path, monkeypatch)
    assert report.backlog.held == pytest.approx(100, rel=0.1)
    assert any("set table_ttl" in one for one in report.warnings)


def test_files_are_of_inputs_that_the_config_has() -> None:
    plan = make_plan(parse_config(JOIN.replace("BUFFER", "none: {}")), level="OFF")
    with pytest.raises(StreamerError, match="of one of the 2 inputs .a, b."):
        read_samples(plan, ("c=a.jsonl",), 1_000)


def test_processors_that_call_others_do_not_run_for_a_sample() -> None:
    text = "pipeline: {processors: [{http: {url: 'http://127.0.0.1:9/'}}]}"
    plan = make_plan(parse_config(text), level="OFF")
    with pytest.raises(StreamerError, match="pipeline.processors.0 http"):
        read_samples(plan, (), 1_000)


@pytest.mark.parametrize("keys", [10, 1_000, 30_000])
def test_all_keys_are_estimated_from_those_of_a_sample(keys: int) -> None:
    rng = random.Random(keys)
    seen = count_keys([str(rng.randrange(keys)) for _ in range(20_000)])
    assert seen.total == pytest.approx(keys, rel=0.1)
    assert seen.count_within(20_000) == pytest.approx(seen.seen, rel=0.1)


def test_a_larger_lateness_than_many_windows_is_warned_of() -> None:
    plan = make_stream(f"tumbling_window: {{{TIME}, {KEYED}, size: 1m, allowed_lateness: 1h}}")
    report = estimate_stream(plan, [[one] for one in make_messages(300)])
    assert any("60 windows of each key wait" in one for one in report.warnings)


def test_a_slower_machine_takes_more_of_the_constants() -> None:
    plan = make_stream(f"tumbling_window: {{{TIME}, {KEYED}, size: 1m}}")
    cost = SampleCost(1_000, 100_000, 0.01, 1, 1_000)
    pace = pace_live(plan, 1_000)
    fast, slow = (estimate_cpu(plan, cost, cost, pace, factor) for factor in (1.0, 3.0))
    assert slow - 10 == pytest.approx(3 * (fast - 10))
    assert 0.1 < measure_slowness() < 30
