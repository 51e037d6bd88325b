"""Taps: what is shown after each stage is what the components made."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.engine.offline.window_simulator import WindowSimulator
from streamer.plan import make_plan
from streamer.tools.tap.stages import Stage, tap
from streamer.tools.tap.text import format_stage, to_json_document

T = 1_700_000_000 * SECOND
CONFIG = """\
input:
  stdin: {}
  processors: [ { label: tidy, mapping: root.n = this.n.number() } ]
%s
pipeline:
  processors:
    - mapping: |
        root = if this.n == 2 { deleted() } else { this }
        meta seen = "yes"
    - log: { message: 'n is ${! this.n }' }
output:
  stdout: {}
  processors: [ mutation: root.out = true ]
"""


def stages(text: str, *contents: Any) -> list[Stage]:
    sample = [[Message(json.dumps(one).encode())] for one in contents]
    return [*tap(make_plan(parse_config(text, "x.yaml"), "OFF"), sample, lambda: T)]


def docs(stage: Stage) -> list[list[Any]]:
    return [[message.doc for message in batch] for batch in stage.batches]


def test_every_component_is_a_stage_in_the_order_of_a_message_s_way() -> None:
    found = stages(CONFIG % "buffer: { memory: {} }")
    assert [(stage.path, stage.name, stage.label) for stage in found] == [
        ("input", "stdin", ""),
        ("input.processors.0", "mapping", "tidy"),
        ("buffer", "memory", ""),
        ("pipeline.processors.0", "mapping", ""),
        ("pipeline.processors.1", "log", ""),
        ("output.processors.0", "mutation", ""),
        ("output", "stdout", ""),
    ]


def test_each_stage_shows_its_own_state_of_a_message() -> None:
    found = stages(CONFIG % "", {"n": "1"}, {"n": "2"}, {"n": "x"})
    assert docs(found[0]) == [[{"n": "1"}], [{"n": "2"}], [{"n": "x"}]]
    assert docs(found[1])[:2] == [[{"n": 1}], [{"n": 2}]]
    assert found[1].batches[2][0].error is not None
    assert docs(found[2])[0] == [{"n": 1}]
    assert len(found[2].batches) == 2
    assert found[2].batches[0][0].meta == {"seen": "yes"}
    assert found[1].batches[0][0].meta == {}
    assert found[3].logged[0][:2] == ("INFO", "n is 1")
    assert docs(found[-1])[0] == [{"n": 1, "out": True}]


def test_windows_are_batches_and_what_is_late_is_shown_as_dropped() -> None:
    window = "buffer: { system_window: { timestamp_mapping: root = this.n, size: 10s } }"
    first = T // SECOND
    contents = [{"n": first + second} for second in (1, 2, 15, 3)]
    buffer = stages(CONFIG % window, *contents)[2]
    assert docs(buffer) == [contents[:2], contents[2:3]]
    assert [message.doc for message in buffer.dropped] == contents[3:]
    assert buffer.dropped[0].meta["window_drop_reason"] == "late"
    end = "2023-11-14T22:13:30Z"
    assert buffer.batches[0][0].meta["window_end_timestamp"] == end


def test_what_the_output_would_get_is_what_the_stream_gives_it() -> None:
    text = (
        "buffer: { system_window: { timestamp_mapping: root = this.n, size: 10s, slide: 5s } }\n"
        "pipeline: { processors: [ { group_by_value: { value: '${! this.k }' } }, { mapping: '"
        'root = if batch_index() == 0 { {"k": this.k, "sum": json("n").from_all().sum()} } '
        "else { deleted() }' } ] }\n"
    )
    contents: list[dict[str, Any]] = [
        {"n": T // SECOND + n / 2, "k": "ab"[n % 2]} for n in range(30)
    ]
    output = stages(text, *contents)[-1]
    stream = ScriptedStream(make_plan(parse_config(text, "x.yaml")))
    made = []
    for content in contents:
        t = int(content["n"] * SECOND)
        while (due := stream.snapshot.next_close) is not None and due < t:
            made += stream.run_micro_batch(due).batches
        made += stream.run_micro_batch(
            t, [ScriptedMessage(Message(json.dumps(content).encode()))]
        ).batches
    while (due := stream.snapshot.next_close) is not None:
        made += stream.run_micro_batch(due).batches
    assert docs(output) == [[message.doc for message in batch] for batch in made]
    assert len(made) > 6


def test_the_text_shows_messages_metadata_errors_and_lines_of_the_log() -> None:
    found = stages(CONFIG % "", {"n": "1"}, {"n": "x"})
    assert format_stage(found[1], 10).startswith(
        'input.processors.0: mapping [tidy], 2 messages\n  {"n":1}\n  {"n": "x"}\n    failed: '
    )
    assert format_stage(found[2], 1) == (
        'pipeline.processors.0: mapping, 2 messages\n  {"n":1}\n    @seen=yes\n  … and 1 more\n'
    )
    assert "\n  log INFO: n is 1\n" in format_stage(found[3], 1)
    assert format_stage(found[-1], 0).startswith(
        "output: stdout, 2 messages (nothing is written)\n"
    )


def test_the_text_names_batches_and_what_was_dropped_and_is_cut_at_the_width() -> None:
    window = "buffer: { system_window: { timestamp_mapping: root = this.n, size: 10s } }"
    contents: list[dict[str, Any]] = [
        {"n": T // SECOND + second, "pad": "x" * 50} for second in (1, 2, 15)
    ]
    buffer = stages(CONFIG % window, *contents, {"n": "?"})[2]
    lines = format_stage(stages(window, *contents, {})[1], 10, width=40).splitlines()
    assert lines[0].startswith("buffer: system_window, 3 messages in 2 batches, 1 dropped")
    assert lines[1] == "  batch 1 of 2 messages"
    assert "  dropped, timestamp:" in lines
    assert max(map(len, lines[1:])) == 40
    assert len(buffer.batches) == 3  # one failed in the input's processors, and passes by


def test_json_writes_messages_as_unit_tests_do() -> None:
    found = stages(CONFIG % "", {"n": "1"})
    assert to_json_document(found[2], 10) == {
        "path": "pipeline.processors.0",
        "component": "mapping",
        "messages": 1,
        "batches": [[{"json_content": {"n": 1}, "metadata": {"seen": "yes"}}]],
    }
    assert to_json_document(found[3], 10)["logged"] == [{"level": "INFO", "message": "n is 1"}]
    assert to_json_document(found[0], 0)["batches"] == []
    assert to_json_document(Stage("a", "b", "", [[Message(b"\xff", {}, "no")]]), 1)["batches"] == [
        [{"content": "\ufffd", "failed": "no"}]
    ]


def test_messages_in_windows_that_stay_open_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(player: WindowSimulator, now: int, wait: bool) -> int:
        return ends(player, now, wait=False)

    ends = WindowSimulator.end
    window = "timestamp_mapping: root = this.n, size: 10s, end_of_input: keep"
    config, now = f"buffer: {{ system_window: {{ {window} }} }}", T // SECOND
    assert stages(config, {"n": now + 1})[1].note == "on a clock that follows event times"
    # As it is where only further messages move the clock.
    monkeypatch.setattr(WindowSimulator, "end", end)
    found = stages(config, {"n": now + 1}, {"n": now + 2})[1]
    assert (found.batches, found.note.partition("; ")[2]) == ([], "2 in windows that stay open")


STATE = """
buffer: { %s }
pipeline:
  processors:
    - mapping: |
        root = this
        root.before = lag(this.n)
    - throttle: { period: 10s }
output: { drop: {} }
"""


@pytest.mark.parametrize(
    "buffer",
    [
        "keyed_state: { key_mapping: root = this.k, timestamp_mapping: root = this.t }",
        "tumbling_window: "
        "{ key_mapping: root = this.k, timestamp_mapping: root = this.t, size: 1s }",
    ],
)
def test_state_by_key_is_that_of_a_stream_that_begins_with_the_sample(buffer) -> None:
    events = [("a", 1, 0), ("b", 2, 2), ("a", 3, 4), ("a", 4, 20)]
    found = stages(STATE % buffer, *({"k": k, "n": n, "t": 1000 + t} for k, n, t in events))
    mapped, throttled = found[2:4]
    assert [[one["before"] for one in batch] for batch in docs(mapped)] == [
        [None],
        [None],
        [1],
        [3],
    ]
    assert [[one["n"] for one in batch] for batch in docs(throttled)] == [[1], [2], [4]]
    assert [batch[0].meta["throttle_suppressed"] for batch in throttled.batches] == [0, 0, 1]


BUFFERS = """\
input: { stdin: {} }
buffers:
  - label: tens
    tumbling_window: { timestamp_mapping: root = this.n, size: 10s }
    pipeline: { processors: [ { label: count, mapping: 'root.of = batch_size()' } ] }
  - label: minutes
    from: tens
    tumbling_window: { size: 1m }
    pipeline: { processors: [ { label: sum, mapping: 'root.sum = this.of' } ] }
    output: { drop: {}, processors: [ mutation: root.out = true ] }
  - label: all
    count_window: { count: 2 }
    pipeline: { processors: [ { label: keep, mapping: root = this } ] }
output: { stdout: {} }
"""


def test_the_pipelines_of_all_buffers_are_shown_in_the_order_of_a_message() -> None:
    found = stages(BUFFERS, *({"n": T // SECOND + n} for n in (1, 2, 15, 70)))
    assert [(one.path.rpartition(".")[2], one.label) for one in found] == [
        ("input", ""),
        *(("0", "tens"), ("0", "count")),
        *(("2", "all"), ("0", "keep"), ("output", "")),
        *(("1", "minutes"), ("0", "sum"), ("0", ""), ("output", "")),
    ]
    by_label = {one.label: one for one in found if one.label}
    assert [len(batch) for batch in by_label["tens"].batches] == [2, 1, 1]
    assert docs(by_label["minutes"]) == [[{"of": 2}, {"of": 2}, {"of": 1}], [{"of": 1}]]
    assert [len(batch) for batch in by_label["all"].batches] == [2, 2]
    assert docs(found[-1])[0][0] == {"sum": 2, "out": True}
    assert "stay open" not in by_label["minutes"].note
