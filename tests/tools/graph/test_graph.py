"""Graphs of plans: every component is there, in its stage, in each of the three forms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from streamer.config import parse_config
from streamer.config.echo import ConfigRedactor
from streamer.plan import make_plan
from streamer.tools.graph.mermaid import format_mermaid
from streamer.tools.graph.model import Graph, Node, build_graph
from streamer.tools.graph.svg import draw_graph
from streamer.tools.graph.text import format_graph

WHOLE = """\
input:
  label: sensors
  file: { paths: ["./data/*.jsonl"] }
  processors: [ mapping: root = this ]
buffer:
  system_window:
    { timestamp_mapping: root = this.at, size: 1h, slide: 10m, allowed_lateness: 1m,
      late_output: late }
pipeline:
  processors:
    - group_by:
        - check: this.kind == "<a>"
          processors: [ { mapping: 'root.kind = "A"' }, log: { message: hello } ]
        - check: this.kind == "b"
          processors: [ try: [ { mutation: root.a = 1 }, noop: {} ] ]
    - mapping: |
        # comes first
        root = this
        root.n = 1
output:
  stdout: {}
  processors: [ split: { size: 2 } ]
output_resources: [ { label: late, file: { path: late.jsonl } } ]
spark: { shards: 3 }
"""
TREE = """\
x
├─ stage 1 (Spark workers)
│  ├─ input file [sensors]  paths: ./data/*.jsonl
│  ├─ mapping  root = this
│  └─ buffer system_window  time and shard of each message; packed by window
│  ▼ shuffle: packed messages, by this.kind == "<a>" | this.kind == "b"
├─ stage 2 (Spark workers, 3 shards)
│  ├─ buffer system_window  windows of 1h every 10m, 1m for late messages; each one batch
│  ├─ group_by
│  │  ├─ this.kind == "<a>"
│  │  │  ├─ mapping  root.kind = "A"
│  │  │  └─ log  message: hello
│  │  └─ this.kind == "b"
│  │     └─ try
│  │        ├─ mutation  root.a = 1
│  │        └─ noop
│  ├─ mapping  root = this …
│  ├─ split  size: 2
│  ├─ output stdout
│  └─ messages that the windows drop
│     └─ late_output file [late]  path: late.jsonl
│  ▼ encoded messages
└─ driver (this program)
   ├─ output stdout  prints
   └─ messages that the windows drop
      └─ late_output file [late]  appends, exactly once
"""


def graph(text: str, env: dict[str, str] | None = None) -> Graph:
    config = parse_config(text, "x.yaml", env=env or {})
    return build_graph(make_plan(config), ConfigRedactor(config, env or {}))


def nodes(found: Graph) -> Iterator[Node]:
    def below(node: Node) -> Iterator[Node]:
        yield node
        for branch in node.branches:
            for inner in branch.nodes:
                yield from below(inner)

    for stage in found.stages:
        for node in stage.nodes:
            yield from below(node)


def test_the_tree_has_every_component_in_its_stage() -> None:
    assert format_graph(graph(WHOLE)) == TREE


def test_lines_of_the_tree_are_cut_at_the_width() -> None:
    lines = format_graph(graph(WHOLE), width=50).splitlines()
    assert max(map(len, lines)) == 50
    assert sum(line.endswith("…") for line in lines) >= 3


def test_without_windows_there_is_one_stage_and_the_driver() -> None:
    found = graph("buffer: { memory: {} }\npipeline: { processors: [ noop: {} ] }")
    assert [stage.name for stage in found.stages] == ["stage 1", "driver"]
    assert [node.name for node in nodes(found)] == ["stdin", "memory", "noop", "stdout", "stdout"]


def test_a_window_without_a_key_goes_to_one_shard() -> None:
    found = graph("buffer: { system_window: { size: 10s } }")
    assert found.stages[0].leaves == "shuffle: packed messages, all to one shard"
    found = graph("buffer: { system_window: { size: 10s } }\nspark: { shards: 3 }")
    assert found.stages[1].where == "Spark workers, one of 3 shards is used"


def test_mermaid_has_a_subgraph_for_each_stage_and_an_arrow_into_every_node() -> None:
    text = format_mermaid(graph(WHOLE))
    assert text.startswith("flowchart TD\n")
    assert re.findall(r"subgraph s\d\[\"(.*?)\"\]", text) == [
        "stage 1: Spark workers",
        "stage 2: Spark workers, 3 shards",
        "driver: this program",
    ]
    names = re.findall(r"^    (n\d+)[\[(]", text, re.M)
    entered = set(re.findall(r"> ?(?:.*\| )?(n\d+)$", text, re.M))
    assert set(names) - entered == {names[0]}
    assert len(names) == len([*nodes(graph(WHOLE))])
    assert text.count('-.->|"messages that the windows drop"| n') == 1


def test_what_mermaid_would_take_for_itself_is_escaped() -> None:
    text = format_mermaid(graph(WHOLE))
    assert "this.kind == #quot;#lt;a#gt;#quot;" in text
    labels = re.findall(r"\[\"(.*)\"\]", text)
    assert labels
    assert not any('"' in label for label in labels)


def test_the_drawing_is_xml_that_names_every_component() -> None:
    root = ElementTree.fromstring(draw_graph(graph(WHOLE)))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for node in nodes(graph(WHOLE)):
        assert f"{node.name} [{node.label}]" if node.label else node.name in texts
    assert {"stage 1", "stage 2", "driver", "late_output"} <= set(texts)


def test_long_texts_are_cut_by_how_wide_they_are() -> None:
    svg = draw_graph(graph(f"input: {{ label: {'a' * 200}, file: {{ paths: [{'語' * 200}] }} }}"))
    root = ElementTree.fromstring(svg)
    texts = [str(one.text) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    [name] = [text for text in texts if text.startswith("file [")]
    [detail] = [text for text in texts if text.startswith("paths: ")]
    assert name.endswith("a…") and 40 < len(name) < 75
    assert detail.endswith("語…") and 40 < len(detail) < 60


def test_the_drawing_stays_within_its_frame() -> None:
    root = ElementTree.fromstring(draw_graph(graph(WHOLE)))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        box = {name: float(rect.attrib.get(name, 0)) for name in ("x", "y", "width", "height")}
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width
        assert 0 <= box["y"] <= box["y"] + box["height"] <= height


@pytest.mark.parametrize("form", [format_graph, format_mermaid, draw_graph])
def test_no_secret_and_no_value_of_a_variable_is_drawn(form: object) -> None:
    config = (
        'input: { file: { paths: ["${DIR}/a", "http://u:hunter2@h"] } }\n'
        "buffer: { system_window: { size: 1m } }\n"
        "pipeline: { processors: [ group_by_value: { value: '${! this.${KEY} }' } ] }\n"
    )
    assert callable(form)
    text = form(graph(config, {"DIR": "/hidden", "KEY": "verysecret"}))
    assert "hidden" not in text
    assert "hunter2" not in text
    assert "verysecret" not in text
    assert "${DIR}/a" in text
