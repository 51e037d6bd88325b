"""Names of the sources that a clock waits for, and of those of which nothing has come yet."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.config import parse_config
from streamer.connectors.merged_source import ChildPiece, MergedSource
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.engine.stage.clock_sources import list_clock_sources, name_clock_source
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import make_plan

CONFIG = """
input:
  broker:
    inputs:
      - label: orders
        kafka_franz: {seed_brokers: [x], topics: [orders], consumer_group: g}
      - broker:
          inputs:
            - label: files
              file: {paths: [x]}
            - kafka_franz: {seed_brokers: [x], topics: [a, b], consumer_group: g}
buffer:
  tumbling_window: {timestamp_mapping: root = this.t, size: 10s%s}
"""


class Partitioned:
    has_partitions = True


def task_plan(more: str, text: str = CONFIG) -> TaskPlan:
    return TaskPlan.of(make_plan(parse_config(text % more, env={})))


def sources() -> Any:
    inner = MergedSource({"files": object(), "1": Partitioned()})  # type: ignore[dict-item]
    return MergedSource({"orders": Partitioned(), "1": inner})  # type: ignore[dict-item]


ENDS = [{"orders": {"0": 5, "1": 0}}, {"a": {"0": 1}, "b": {"3": 0}}]


@pytest.mark.parametrize(
    ("scope", "known", "named"),
    [
        ("", (), ["", ""]),
        (
            ", clock_scope: partition",
            ("orders:orders/0", "orders:orders/1", "files", "1:1:a/0", "1:1:b/3"),
            ["1:1:b/3", "files"],
        ),
        (
            ", clock_scope: input",
            ("orders", "files", "input.broker.inputs.1.broker.inputs.1"),
            ["input.broker.inputs.1.broker.inputs.1", "files"],
        ),
    ],
)
def test_sources_are_partitions_or_inputs(
    scope: str, known: tuple[str, ...], named: list[str]
) -> None:
    plan = task_plan(scope)
    assert list_clock_sources(plan, sources(), ENDS) == known
    kafka: Any = SourcePiece(
        Partitioned(),  # type: ignore[arg-type]
        0,
        ChildPiece(1, ChildPiece(1, "run")),
        partition="1:1:b/3",
    )
    file: Any = SourcePiece(
        object(),  # type: ignore[arg-type]
        1,
        ChildPiece(1, ChildPiece(0, "range")),
        partition="1:files:x",
    )
    found = [name_clock_source(plan, one) for one in (kafka, file)]
    assert found == named


JOIN = """
input: {broker: {inputs: [{label: orders, stdin: {}}, {label: payments, file: {paths: [x]}}]}}
buffer:
  window_join:
    {left: orders, right: payments, timestamp_mapping: root = this.t, key_mapping: root = this.k,
     before: 0s, after: 10s, type: left%s}
"""


def test_a_join_waits_for_the_side_that_is_behind() -> None:
    def sent(side: str, t: int, key: str) -> ScriptedMessage:
        return ScriptedMessage(Message.from_value({"t": t, "k": key}), input=side)

    order, far = sent("orders", 10, "a"), sent("orders", 5000, "z")
    payment = sent("payments", 12, "a")
    late = {}
    for scope in ("", ", clock_scope: input"):
        plan = make_plan(parse_config(JOIN % scope, env={}))
        stream = ScriptedStream(plan, known=[order, payment])
        batches = stream.run_micro_batch(SECOND, [order, far]).batches
        batches += stream.run_micro_batch(2 * SECOND, [payment]).batches
        late[scope] = stream.snapshot.dropped.get("late", 0), [b[0].doc["right"] for b in batches]
    # By the clock of both sides the order comes out alone, and its payment is late.
    assert late == {
        "": (1, [None]),
        ", clock_scope: input": (0, [{"t": 12, "k": "a"}]),
    }
