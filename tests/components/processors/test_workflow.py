"""`workflow`: the order that is found out, branches at once, and what messages tell of it.

The cases of Benthos's documentation are here, with processors that need no server.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.bloblang import compile_mapping
from streamer.bloblang.analysis.read_write_sets import Target, find_reads, find_writes
from streamer.components.catalog import build_context
from streamer.components.processors.workflow import WorkflowProcessor
from streamer.config import parse_config
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.processing.branch_order import LayerError, sort_into_layers

from .conftest import Make, Run, messages


def layers_of(processor: Any) -> Any:
    workflow = processor.processor
    assert isinstance(workflow, WorkflowProcessor)
    return workflow.layers


AUTOMATIC = """\
workflow:
  meta_path: meta.workflow
  branches:
    foo:
      request_map: 'root = ""'
      processors: [ { mapping: 'root.id = "f1"' } ]
      result_map: 'root.foo = this'
    bar:
      request_map: 'root = this.body'
      processors: [ { mapping: 'root.content = this.text.uppercase()' } ]
      result_map: 'root.bar = this'
    baz:
      request_map: |
        root.fooid = this.foo.id
        root.barstuff = this.bar.content
      processors: [ { mapping: 'root = this.fooid + this.barstuff' } ]
      result_map: 'root.baz = content().string()'
"""


def test_branches_come_after_those_whose_results_they_ask_for(make: Make, a_run: Run) -> None:
    workflow = make(AUTOMATIC)
    assert layers_of(workflow) == (("bar", "foo"), ("baz",))
    [[made]] = workflow.process(messages('{"body":{"text":"hi"}}'), a_run.ex)
    assert json.loads(made.raw) == {
        "body": {"text": "hi"},
        "foo": {"id": "f1"},
        "bar": {"content": "HI"},
        "baz": "f1HI",
        "meta": {"workflow": {"succeeded": ["bar", "baz", "foo"]}},
    }


CONDITIONAL = """\
workflow:
  branches:
    A:
      request_map: 'root = if this.document.type == "foo" { this } else { deleted() }'
      processors: [ { mapping: 'root = "a"' } ]
      result_map: 'root.tmp.result = content().string()'
    B:
      request_map: 'root = if this.document.type == "foo" { deleted() } else { this }'
      processors: [ { mapping: 'root = if this.document.fails { throw("b fails") } else { "b" }' } ]
      result_map: 'root.tmp.result = content().string()'
    C:
      request_map: 'root = if this.tmp.result != null { deleted() }'
      processors: [ { mapping: 'root = "c"' } ]
      result_map: 'root.tmp.result = content().string()'
"""


@pytest.mark.parametrize(
    ("document", "result", "told"),
    [
        ({"type": "foo"}, "a", {"succeeded": ["A"], "skipped": ["B", "C"]}),
        ({"type": "bar", "fails": False}, "b", {"succeeded": ["B"], "skipped": ["A", "C"]}),
    ],
)
def test_branches_are_skipped_where_their_request_is_deleted(
    make: Make, a_run: Run, document: Any, result: str, told: Any
) -> None:
    workflow = make(CONDITIONAL)
    assert layers_of(workflow) == (("A", "B"), ("C",))
    [[made]] = workflow.process([Message.from_value({"document": document})], a_run.ex)
    assert made.doc["tmp"]["result"] == result
    assert made.doc["meta"]["workflow"] == told


RESOURCES = """
input: {generate: {mapping: root = 1}}
pipeline:
  processors:
    - workflow:
        order: [[foo, bar], [baz]]
        branches:
          bar:
            request_map: root = this.body
            processors: [noop: {}]
            result_map: root.bar = this
processor_resources:
  - label: foo
    branch:
      request_map: root = {}
      processors: [{mapping: root.id = 7}]
      result_map: root.foo = this
  - label: baz
    branch:
      request_map: root = [this.foo.id, this.bar]
      processors: [noop: {}]
      result_map: root.baz = this
"""


def test_branches_may_be_resources_that_the_order_names(a_run: Run) -> None:
    config = parse_config(RESOURCES, env={})
    assert config.lints == ()
    (workflow,) = build_context(config.resources).build_all(config.processors)
    [[made]] = workflow.process(messages('{"body":1}'), a_run.ex)
    assert made.doc["baz"] == [7, 1]
    assert made.doc["meta"]["workflow"] == {"succeeded": ["bar", "baz", "foo"]}


def test_a_name_in_the_order_that_is_nothing_is_found_by_lint() -> None:
    with pytest.raises(ConfigError, match="no processor resource with the label 'fob'"):
        parse_config(RESOURCES.replace("[[foo,", "[[fob,"), env={})


def test_a_resource_that_is_no_branch_cannot_be_a_part_of_a_workflow() -> None:
    text = "input: {stdin: {}}\npipeline: {processors: [{workflow: {branch_resources: [x]}}]}\n"
    config = parse_config(f"{text}processor_resources: [{{label: x, noop: {{}}}}]\n", env={})
    with pytest.raises(StreamerError, match="'x' is no branch"):
        build_context(config.resources).build_all(config.processors)


# Each branch stores a key and waits until the other's is there: in turn none would ever end.
TOGETHER = """
pipeline:
  processors:
    - workflow:
        branches:
          a: &a
            processors:
              - cache: {resource: met, operator: set, key: a, value: A}
              - retry: &patient
                  backoff: {initial_interval: 1ms, max_interval: 5ms, max_elapsed_time: 60s}
                  processors: [{cache: {resource: met, operator: get, key: b}}]
            result_map: root.a = content().string()
          b:
            processors:
              - cache: {resource: met, operator: set, key: b, value: B}
              - retry:
                  <<: *patient
                  processors: [{cache: {resource: met, operator: get, key: a}}]
            result_map: root.b = content().string()
cache_resources:
  - label: met
    memory: {}
"""


def test_branches_of_a_layer_run_at_once() -> None:
    config = parse_config(TOGETHER, env={})
    (workflow,) = build_context(config.resources).build_all(config.processors)
    [[made]] = workflow.process(messages("{}"), Execution(lambda: 0))
    assert (made.doc["a"], made.doc["b"]) == ("B", "A")


@pytest.mark.parametrize(
    ("branch", "line"),
    [
        ("{request_map: 'root = throw(\"no\")', processors: [noop: {}]}",
         "Failed to map request '0': failed assignment (line 1): no"),
        ("{processors: [noop: {}], result_map: 'root.a = throw(\"no\")'}",
         "Failed to map result '0': failed assignment (line 1): no"),
        ("{processors: [{mapping: 'root = deleted()'}]}",
         "Child processors failed: child processors resulted in zero messages"),
    ],
)  # fmt: skip
def test_what_has_failed_in_a_branch_is_logged_as_of_that_branch(
    make: Make, a_run: Run, branch: str, line: str
) -> None:
    workflow = make(
        "label: all\nworkflow:\n  branches:\n"
        f"    well: {{processors: [noop: {{}}]}}\n    ill: {branch}"
    )
    workflow.process(messages("{}"), a_run.ex)
    of = {text: fields for (_, text), fields in zip(a_run.logged, a_run.fields, strict=True)}
    path = "root.pipeline.processors.0.workflow.branches.ill"
    assert of[line] == {"label": "", "path": path}


def test_only_what_has_failed_is_done_again(make: Make, a_run: Run) -> None:
    workflow = make(CONDITIONAL)
    [[failed]] = workflow.process(
        [Message.from_value({"document": {"type": "bar", "fails": True}})], a_run.ex
    )
    first = failed.doc["meta"]["workflow"]
    assert first["failed"] == {"B": "processors failed: failed assignment (line 1): b fails"}
    doc = {**failed.doc, "document": {"type": "bar", "fails": False}}
    [[made]] = workflow.process([Message.from_value(doc)], a_run.ex)
    # C has succeeded the first time.
    assert made.doc["meta"]["workflow"] == {
        "succeeded": ["B"],
        "skipped": ["A", "C"],
        "previous": first,
    }


@pytest.mark.parametrize(
    ("mapping", "read"),
    [
        ("root = this", [()]),
        ("root = this.a.b + this.c", [("a", "b"), ("c",)]),
        ("root.x = json(`a.b`).c", [("a", "b"), ("a", "b", "c")]),
        ("root = a.(b + this.c)", [("a",), ("a", "b"), ("a", "c")]),
        ("root = a.map(x -> x.b + this.c)", [("a",), ("a", "b"), ("c",)]),
        ("root = this.a.map_each(v -> v.b + this.c)", [("a",)]),
        ("root = this.a.or(this.b)", [("a",), ("b",)]),
        ("root = this.a.catch(this.b)", [("a",), ("b",)]),
        ("let x = this.a\nroot = $x", [("a",)]),
        ("root = match this.a { this.b == 1 => this.c, _ => 5 }", [("a", "b"), ("a", "c"), ("a",)]),
        ("root = if this.a { this.b } else { this.c }", [("a",), ("b",), ("c",)]),
        ("map m { root = this.z }\nroot = this.a.apply(`m`)", [("a",), ("a", "z")]),
        ("root = {`x`: this.a, this.b: [this.c, !this.d]}", [("a",), ("b",), ("c",), ("d",)]),
        ("root = this.a.slice(this.b)", [("a",), ("b",)]),
        ("if this.a { root.b = this.c }", [("a",), ("c",)]),
        ("root = root.a", []),
        ("root = deleted()", []),
    ],
)
def test_what_a_mapping_reads_of_the_document(mapping: str, read: list[tuple[str, ...]]) -> None:
    found = find_reads(compile_mapping(mapping.replace("`", '"')))
    assert [(target.metadata, target.path) for target in found] == [(False, one) for one in read]


def test_what_a_mapping_reads_of_the_metadata() -> None:
    mapping = compile_mapping('root = [@a, meta("b"), metadata("c"), @, metadata()]')
    expected = [("a",), ("b",), ("c",), ()]
    assert find_reads(mapping) == [Target(True, path) for path in expected]


def test_what_a_mapping_writes() -> None:
    mapping = compile_mapping(
        "root.a.b = 1\nmeta c = 2\nlet d = 3\nif this.e { root.f = 4 } else { meta = {} }"
    )
    paths = [(False, ("a", "b")), (True, ("c",)), (False, ("f",)), (True, ())]
    assert find_writes(mapping) == [Target(*one) for one in paths]


def test_a_part_is_needed_where_something_at_or_above_it_is_written() -> None:
    whole, a, ab = Target(False, ()), Target(False, ("a",)), Target(False, ("a", "b"))
    assert sort_into_layers({"x": ([ab], []), "y": ([], [a])}) == (("y",), ("x",))
    assert sort_into_layers({"x": ([a], []), "y": ([], [ab])}) == (("x", "y"),)
    assert sort_into_layers({"x": ([a], []), "y": ([], [whole])}) == (("y",), ("x",))
    assert sort_into_layers({"x": ([Target(True, ("a",))], []), "y": ([], [a])}) == (("x", "y"),)
    assert sort_into_layers({"x": ([a], [a])}) == (("x",),)
    with pytest.raises(LayerError, match=r"for branches: \[x y\]$"):
        sort_into_layers({"x": ([a], [ab]), "y": ([ab], [a]), "z": ([], [])})
