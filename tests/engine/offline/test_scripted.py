"""A stream without Spark on a scripted clock."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.engine.report.emission_stats import EmissionStats
from streamer.plan import make_plan
from streamer.sdk.component_ref import ComponentRef
from streamer.window import Emission

T = 1_700_000_000 * SECOND  # a multiple of 10 s
CONFIG = """
input: {stdin: {}, processors: [{mapping: root = deleted()}]}
buffer: {system_window: {timestamp_mapping: root = this.at, size: 10s}}
pipeline: {processors: [%s]}
spark: {shards: 3}
"""


def stream(processors: str = "", log: Any = None, level: str = "INFO") -> ScriptedStream:
    plan = make_plan(parse_config(CONFIG % processors, "x.yaml"), level)
    return ScriptedStream(plan, log) if log else ScriptedStream(plan)


def sent(at: float, **more: Any) -> ScriptedMessage:
    return ScriptedMessage(Message(json.dumps({"at": at, **more}).encode()))


def test_the_input_s_processors_are_left_out() -> None:
    run = stream()
    run.run_micro_batch(T, [sent(1_700_000_001)])
    assert run.snapshot.held == 1


def test_groups_come_out_by_arrival_however_many_shards_there_are() -> None:
    run = stream("{group_by_value: {value: '${! this.k }'}}")
    run.run_micro_batch(T, [sent(1_700_000_001, k=k) for k in "zyxabcz"])
    [*groups] = run.run_micro_batch(T + 10 * SECOND).batches
    assert [[m.doc["k"] for m in batch] for batch in groups] == [["z", "z"], *map(list, "yxabc")]


def test_the_clock_of_processors_is_the_scripted_one_and_never_runs_backwards() -> None:
    run = stream("{mapping: root = timestamp_unix()}")
    run.run_micro_batch(T, [sent(1_700_000_001)])
    run.run_micro_batch(T - SECOND)
    assert run.now == T
    [[message]] = run.run_micro_batch(T + 11 * SECOND).batches
    assert message.doc == 1_700_000_011


def test_log_lines_are_given_down_to_the_plan_s_level() -> None:
    lines: list[tuple[str, str]] = []
    processors = "{log: {message: hello}}, {log: {message: more, level: DEBUG}}"
    run = stream(processors, lambda level, text, fields: lines.append((level, text)))
    run.run_micro_batch(T, [sent(1_700_000_001), ScriptedMessage(Message(b"x"))])
    run.run_micro_batch(T + 10 * SECOND)
    shown = [line for line in lines if "micro-batch" not in line[1]]
    assert [level for level, _ in shown] == ["WARN", "INFO"]
    assert shown[1] == ("INFO", "hello")


def test_an_input_that_has_ended_stays_so_until_a_restart() -> None:
    run = stream()
    run.run_micro_batch(T, ended=True)
    run.run_micro_batch(T + SECOND)
    assert run.snapshot.ended
    run.restart()
    run.run_micro_batch(T + SECOND)
    assert not run.snapshot.ended


JOIN = """
input: {broker: {inputs: [{label: a, stdin: {}}, {label: b, generate: {mapping: root = 1}}]}}
buffer: {window_join: {left: a, right: b, timestamp_mapping: root = this.at, within: 10s}}
"""


def test_a_join_asks_from_which_input_a_message_is() -> None:
    run = ScriptedStream(make_plan(parse_config(JOIN)))
    one, other = (Message(b'{"at": %d}' % at) for at in (5, 9))
    run.run_micro_batch(T, [ScriptedMessage(one, 0, "a")])
    (batch,) = run.run_micro_batch(T, [ScriptedMessage(other, 0, "b")]).batches
    assert [message.doc for message in batch] == [{"left": {"at": 5}, "right": {"at": 9}}]
    with pytest.raises(StreamerError, match="got messages of the input 'c'"):
        run.run_micro_batch(T, [ScriptedMessage(one, 0, "c")])
    with pytest.raises(StreamerError, match="got messages of an input without a label"):
        run.run_micro_batch(T, [ScriptedMessage(one)])


def test_a_payload_that_is_no_json_is_joined_as_a_text() -> None:
    text = JOIN.replace("root = this.at", 'root = "2026-01-01T00:00:00Z"')
    run = ScriptedStream(make_plan(parse_config(text)))
    sent = [
        ScriptedMessage(Message(b"no json", {"m": 1, "n": 1}), 0, "a"),
        ScriptedMessage(Message(b"", {"n": 2}), 0, "b"),
    ]
    ((message,),) = run.run_micro_batch(T, sent).batches
    assert message.doc == {"left": "no json", "right": ""}
    assert (message.meta["m"], message.meta["n"]) == (1, 1)


MANY = 1_200
"""More than go through a pipeline together."""


def test_each_pair_is_a_batch_by_itself_whose_metadata_a_mapping_reads_and_changes() -> None:
    text = f"""{JOIN}
pipeline:
  processors:
    - mapping: |
        meta place = batch_index()
        root.shipment = this.right.n
        root.told = @.without("window_start_timestamp", "window_end_timestamp", "place")
        root.size = batch_size()
"""
    run = ScriptedStream(make_plan(parse_config(text)))
    one = Message(b'{"at": 5}', {"of": "order", "place": "?"})
    others = [Message(b'{"at": 9, "n": %d}' % n, {"of": "other", "n": n}) for n in range(MANY)]
    sent = [ScriptedMessage(one, 0, "a"), *(ScriptedMessage(other, 0, "b") for other in others)]
    batches = run.run_micro_batch(T, sent).batches
    assert [len(batch) for batch in batches] == [1] * MANY
    made = [message for (message,) in batches]
    assert [message.doc["shipment"] for message in made] == list(range(MANY))
    assert {message.doc["size"] for message in made} == {1}
    assert made[7].doc["told"] == {
        "of": "order",
        "n": 7,
        "window_emit": "event",
        "window_start_unix_ms": 5_000,
        "window_end_unix_ms": 9_000,
        "window_max_timestamp": "1970-01-01T00:00:09Z",
    }
    assert {message.meta["place"] for message in made} == {0}


def test_messages_that_leave_apart_are_counted_as_batches_by_themselves() -> None:
    plan, ex = make_plan(parse_config(JOIN)), Execution(lambda: T)
    EmissionStats(plan, ex).add(
        Emission(None, [Message(b"1"), Message(b"2")], "event", is_per_message=True)
    )
    tally = ex.stats_of(ComponentRef(plan.buffer).key)
    assert (tally.sent, tally.batches_sent) == (2, 2)
