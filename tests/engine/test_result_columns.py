"""Results that are written column by column are what the mapping makes of each group."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang.analysis.result_columns import find_result_columns
from streamer.engine.stage import aggregated_pipeline
from tests.examples import examples

from .folded import T, outcome

CONFIG = """
input:
  file: {paths: [cars.jsonl]}
buffer:
  %s
pipeline:
  processors:
    %s
    - mapping: |
        root = if batch_index() == 0 { %s } else { deleted() }
spark: {shards: 2, master: "local[2]"}
"""
KEYED = "{size: 5s, timestamp_mapping: root = this.ts, key_mapping: root = this.light}"
BUFFERS = {
    "tumbling": ("tumbling_window: " + KEYED, ""),
    "hopping": ("hopping_window: " + KEYED.replace("5s", "6s, every: 2s"), ""),
    "session": ("session_window: " + KEYED.replace("size: 5s", "gap: 2s"), ""),
    "grouped": (
        "tumbling_window: " + KEYED.replace(", key_mapping: root = this.light", ""),
        "- group_by_value: {value: '${! this.light }'}",
    ),
    "alone": ("tumbling_window: " + KEYED.replace(", key_mapping: root = this.light", ""), ""),
}
RESULTS = (
    """{"n": batch_size(), "sum": json("p").from_all().sum(), "light": this.light,
        "end": meta("window_end_timestamp"), "key": @window_key, "\\u2028": "a\\nb"}""",
    """{"at": {"path": metadata("path"), "none": meta("none"), "ms": @window_start_unix_ms},
        "max": json("p").from_all().max(), "x": this.x.y, "one": json("x"), "c": 1.50,
        "kinds": json("p").from_all().unique().length()}""",
    """{"mean": (json("p").from_all().sum() / batch_size()).round(), "last": @window_max_timestamp,
        "all": json("x").from_all().unique(), "b": 1, "a": null}""",
)
NUMBERS = st.sampled_from([0, -0.0, 1, 2.5, -3, 1e15, 1e21, 1e-7, 2**53 + 1, 0.1])
VALUES = NUMBERS | st.sampled_from(
    [None, "a\u2028b", 'q"\n', "é", {"y": 1.0}, {"y": ["z"]}, 10**30]
)
LIGHTS = st.sampled_from(["a", "b", 'c"\n\u2028', 1, 1.0, "2.0,", "d"])


@st.composite
def documents(draw: st.DrawFn) -> list[dict[str, object]]:
    odd = draw(st.integers(0, 3)) == 0
    return [
        {
            "light": draw(LIGHTS),
            "ts": T + draw(st.sampled_from([1, 2.5, 4, 6, 9])),
            "p": draw(VALUES if odd else NUMBERS),
            "x": draw(VALUES),
        }
        for _ in range(draw(st.integers(1, 12)))
    ]


@pytest.mark.parametrize("buffer", BUFFERS)
@settings(max_examples=examples(8, 60))
@given(data=st.data(), result=st.sampled_from(RESULTS))
def test_columns_are_written_as_objects_are(
    buffer: str, data: st.DataObject, result: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = CONFIG % (*BUFFERS[buffer], result)
    steps = [(at, data.draw(documents()), 100) for at in (1, 9)]
    lines = [(at, [_dump(one) for one in some], limit) for at, some, limit in steps]
    directory = tmp_path_factory.mktemp("columns")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        found = outcome(directory, text, lines, True)
        patch.setattr(aggregated_pipeline, "write_results", lambda groups: None)
        assert outcome(directory, text, lines, True) == found


def _dump(document: dict[str, object]) -> bytes:
    return json.dumps(document).encode()


@pytest.mark.parametrize("result", RESULTS)
def test_these_results_are_columns(result: str) -> None:
    assert find_result_columns(f"root = if batch_index() == 0 {{ {result} }} else {{ deleted() }}")


@pytest.mark.parametrize(
    "result",
    [
        '{"a": deleted(), "n": batch_size()}',
        '{"n": batch_size(), "at": now()}',
        '{"n": batch_size(), "first": json("p").from_all().index(0)}',
        '{"n": batch_size()}.merge(this)',
        "{this.light: batch_size()}",
        '{"n": batch_size(), "e": error()}',
    ],
)
def test_others_are_made_one_by_one(result: str) -> None:
    mapping = f"root = if batch_index() == 0 {{ {result} }} else {{ deleted() }}"
    assert find_result_columns(mapping) is None
