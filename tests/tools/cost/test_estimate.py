"""Estimates of a stream's cost, against the stream itself."""

from __future__ import annotations

import json
import random

import pytest

from streamer.config.load import parse_config
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import Plan, make_plan
from streamer.tools.cost.estimate import estimate_stream, format_report

TIME = "timestamp_mapping: root = this.t"
KEYED = "key_mapping: root = this.k"
WHOLE = 'root.all = json("v").from_all()\nroot = if batch_index() > 0 { deleted() }'


def make_stream(buffer: str, mapping: str = WHOLE) -> Plan:
    pipeline = json.dumps({"processors": [{"mapping": mapping}]})
    text = f"buffer:\n  {buffer}\npipeline: {pipeline}\nspark: {{shards: 2}}\n"
    return make_plan(parse_config(text), level="OFF")


def make_messages(count: int, keys: int = 20, first: int = 0) -> list[Message]:
    rng = random.Random(7)
    return [
        Message.from_value({"t": first + n, "k": rng.randrange(keys), "v": rng.random()})
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
    assert peak / 2 <= report.state_bytes <= peak * 2
    assert report.rate == pytest.approx(1, rel=0.01)
    assert report.keys == 20
    assert report.cpu_seconds > 1


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
