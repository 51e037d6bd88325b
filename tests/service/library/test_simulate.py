"""Simulated streams: the windows of messages on a scripted clock, as a frame."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import streamer
from streamer.sdk import Message

COUNT = """
pipeline:
  processors:
    - mapping: |
        root.numbers = if batch_index() == 0 { json("n").from_all() }
        root = if batch_index() > 0 { deleted() }
"""


def windows(settings: str, kind: str = "tumbling_window") -> streamer.Stream:
    return streamer.loads(
        f"buffer: {{ {kind}: {{ timestamp_mapping: root = this.at, {settings} }} }}{COUNT}"
    )


def numbers(*times: float) -> list[dict[str, Any]]:
    return [{"at": at, "n": number} for number, at in enumerate(times)]


def test_windows_have_their_metadata_in_columns() -> None:
    table = windows("size: 10s, key_mapping: root = this.n % 2").simulate(numbers(1, 2, 3, 11))
    assert table.column_names == [
        *("emitted_at", "batch", "window_start_timestamp", "window_end_timestamp"),
        *("window_max_timestamp", "window_key", "window_emit", "numbers"),
    ]
    assert table.schema.field("window_end_timestamp").type == pa.timestamp("ns", "UTC")
    rows = table.to_pylist()
    assert [(row["window_key"], row["numbers"]) for row in rows] == [
        ("0", [0, 2]),
        ("1", [1]),
        ("1", [3]),
    ]
    assert [row["batch"] for row in rows] == [0, 1, 2]
    assert [row["emitted_at"].timestamp() for row in rows] == [11, 11, 11]
    assert [row["window_emit"] for row in rows] == ["final", "final", "flush"]


def test_every_message_is_in_the_windows_that_an_oracle_puts_it_in() -> None:
    times = [(number * 7919) % 3_600 for number in range(500)]
    table = windows("size: 60s, every: 20s", "hopping_window").simulate(
        [{"at": at, "n": number} for number, at in enumerate(sorted(times))]
    )
    expected: dict[int, list[int]] = {}
    for number, at in enumerate(sorted(times)):
        for end in range(at - at % 20 + 20, at + 61, 20):
            expected.setdefault(end, []).append(number)
    found = {
        int(row["window_end_timestamp"].timestamp()): row["numbers"] for row in table.to_pylist()
    }
    assert found == expected


def test_late_messages_are_another_frame() -> None:
    stream = windows("size: 10s")
    sample = numbers(5, 25, 6)
    table = stream.simulate(sample, dropped=True)
    assert table.select(["drop_reason", "n", "at"]).to_pylist() == [
        {"drop_reason": "late", "n": 2, "at": 6}
    ]
    assert stream.simulate(numbers(5), dropped=True).num_rows == 0
    assert stream.simulate([]).num_rows == 0


def test_the_clock_decides_with_windows_of_the_system_clock() -> None:
    stream = windows("size: 10s", "system_window")
    # By the times of arrival, which are those of events unless something else is given.
    assert stream.simulate(numbers(1, 2, 3))["numbers"].to_pylist() == [[0, 1, 2]]
    late = stream.simulate(numbers(1, 2, 3), clock=20, step="1s", dropped=True)
    # When the first one comes, no window has closed before.
    assert late["drop_reason"].to_pylist() == ["late"] * 2
    for clock in ("1970-01-01T00:00:01Z", 1.0, datetime(1970, 1, 1, 0, 0, 1)):
        table = stream.simulate(numbers(1, 2, 11), clock=clock, step=timedelta(seconds=5))
        assert table["numbers"].to_pylist() == [[0, 1], [2]]
    by_mapping = stream.simulate(numbers(1, 2, 3), arrival="root = this.at + 0.5")
    assert by_mapping["numbers"].to_pylist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    "frame", [pa.table, pd.DataFrame, pl.DataFrame], ids=["pyarrow", "pandas", "polars"]
)
def test_messages_come_as_frames(frame: Any) -> None:
    sample = frame({"at": [1, 2, 11], "n": [7, 8, 9]})
    assert windows("size: 10s").simulate(sample)["numbers"].to_pylist() == [[7, 8], [9]]


def test_messages_come_as_payloads_texts_and_messages() -> None:
    stream = streamer.loads('pipeline: { processors: [{ mapping: meta seen = metadata("x") }] }')
    sample = [b'{"a":1}', '{"a":2}', {"a": 3}, Message(b'{"a":4}', {"x": "y"})]
    table = stream.simulate(sample)
    assert table["a"].to_pylist() == [1, 2, 3, 4]
    assert table["metadata"].to_pylist()[-1] == '{"seen":"y","x":"y"}'


def test_payloads_that_are_no_objects_have_a_column_of_their_own() -> None:
    stream = streamer.loads("pipeline: { processors: [{ mapping: root = this.r }] }")
    sample = [{"r": {"n": 1, "error": "e", "content": 0}}, {"r": "text"}, {"r": [1]}, "no JSON"]
    rows = stream.simulate(sample).to_pylist()
    assert [row["content"] for row in rows] == [None, "text", "[1]", "no JSON"]
    assert [row["n"] for row in rows] == [1, None, None, None]
    assert (rows[0]["content.error"], rows[0]["content.content"]) == ("e", 0)
    assert rows[0]["error"] is None and "failed" in rows[3]["error"]
    raw = streamer.loads("{}").simulate([b"\xff", b"text"])
    assert raw["content"].to_pylist() == [b"\xff", b"text"]


def test_processors_of_input_and_output_run_and_nothing_is_written(tmp_path: Any) -> None:
    path = tmp_path / "out.jsonl"
    table = streamer.load(
        {
            "input": {"stdin": {}, "processors": [{"mapping": "root = this\nroot.a = 1"}]},
            "output": {
                "file": {"path": str(path), "codec": "lines"},
                "processors": [{"mapping": "root = this\nroot.b = this.a + 1"}],
            },
        }
    ).simulate([{}])
    assert table.select(["a", "b"]).to_pylist() == [{"a": 1, "b": 2}] and not path.exists()


JOIN = """
input:
  broker:
    inputs:
      - { label: orders, stdin: {} }
      - { label: payments, generate: { mapping: "root = {}" } }
buffer:
  window_join:
    left: orders
    right: payments
    timestamp_mapping: root = this.at
    key_mapping: root = this.id
    within: 10s
"""


def test_a_join_takes_messages_by_the_labels_of_inputs() -> None:
    stream = streamer.loads(JOIN)
    if stream.lint():
        pytest.fail(str(stream.lint()))
    table = stream.simulate(
        {"orders": [{"id": 1, "at": 1}], "payments": [{"id": 1, "at": 3}, {"id": 2, "at": 4}]}
    )
    [pair] = table.to_pylist()
    assert (pair["left"]["at"], pair["right"]["at"]) == (1, 3)
    with pytest.raises(streamer.StreamerError, match="give the messages by the label"):
        stream.simulate([{"id": 1, "at": 1}])
    with pytest.raises(streamer.StreamerError, match="the labels are: orders, payments"):
        stream.simulate({"nobody": [{}]})
