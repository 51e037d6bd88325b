"""Functions that keep values by key: eKuiper's analytic functions, and `accumulate`.

What eKuiper's own tests ask of these functions is in `EKUIPER` (funcs_analytic_test.go and
funcs_acc_test.go of internal/binder/function): its PARTITION BY is the key here, its WHEN an `if`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.bloblang import BloblangError, compile_mapping
from streamer.core.execution import Execution
from streamer.core.keyed_state import TransientState
from streamer.core.message import Message


def rows(mapping: str, *values: Any, state: TransientState | None = None) -> list[Any]:
    """Return what a mapping gives for messages of one key, one after the other."""
    ex = Execution(lambda: 0)
    ex.keyed_state = state or TransientState()
    compiled = compile_mapping(mapping)
    found = []
    for value in values:
        made = compiled.apply([Message.from_value(value)], 0, ex)
        found.append(None if made is None else json.loads(made.raw))
    return found


@pytest.mark.parametrize(
    ("call", "values", "expected"),
    [
        ("lag(this)", ["foo", "bar", "baz"], [None, "foo", "bar"]),
        ("lag(this, 2)", [1, 2, 3, 4], [None, None, 1, 2]),
        ('lag(this, 2, "no")', [1, 2, 3], ["no", "no", 1]),
        ("lag(this)", [1, None, 3, 4], [None, 1, 1, 3]),
        ("lag(this, 1, 0, false)", [1, None, 3, 4], [0, 1, None, 3]),
        ("latest(this)", [None, 1, None, 2, None], [None, 1, 1, 2, 2]),
        ('latest(this, "?")', [None, "a", None], ["?", "a", "a"]),
        ("had_changed(this)", [1, 1, 2, None, None, 2], [True, False, True, True, False, True]),
        ("had_changed(this)", [None, None, 1], [False, False, True]),
        ("had_changed(this, true)", [1, None, 1, 2], [True, False, False, True]),
        ("had_changed(this)", [[1, "a"], [1, "a"], [1, "b"]], [True, False, True]),
        ("had_changed(this)", [1, 1.0, "1"], [True, False, True]),
        ("acc_sum(this)", [None, 1, 2.5, None, 4], [0, 1, 3.5, 3.5, 7.5]),
        ("acc_count(this)", [None, "a", None, 3], [0, 1, 1, 2]),
        ("acc_min(this)", [3, None, 1, 2], [3, 3, 1, 1]),
        ("acc_max(this)", [1, None, 3, 2], [1, 1, 3, 3]),
        ("acc_avg(this)", [None, 1, 2, 6], [None, 1, 1.5, 3]),
        ('accumulate("n", 0, n -> n + this)', [1, 2, 3], [1, 3, 6]),
        ('accumulate("last", null, this)', [1, 2], [1, 2]),
        ('accumulate("n", 0, n -> if this == 3 { deleted() } else { n + 1 })', [1, 2, 3, 4],
         [1, 2, None, 1]),
        ('accumulate("n", 7, n -> if this == 3 { nothing() } else { n + 1 })', [3, 1, 3],
         [7, 8, 8]),
    ],
)  # fmt: skip
def test_a_call_knows_what_came_before(call, values, expected) -> None:
    mapping = f'root = {{ "r": {call.replace("this", "this.v")} }}'
    found = rows(mapping, *({"v": value} for value in values))
    assert found == [{"r": one} for one in expected]


EKUIPER = [
    ("lag(this.v, 1, 'default', true)", "v", ["foo", None, "bar", "foo", "foo"],
     ["default", "foo", "foo", "bar", "foo"]),
    ("lag(this.v)", "kv", [(1, "foo"), (1, "bar"), (2, "bar"), (1, "foo"), (2, "foo")],
     [None, "foo", None, "bar", "bar"]),
    ("lag(if this.when { this.v })", "vn",
     [("foo", True), ("bar", False), ("bar", True), ("foo", False), ("foo", True)],
     [None, "foo", "foo", "bar", "bar"]),
    ("lag(if this.when { this.v })", "kvn",
     [(1, "foo", True), (1, "bar", False), (2, "bar", True), (1, "foo", True), (2, "foo", True)],
     [None, "foo", None, "foo", "bar"]),
    ("lag(this.v, 2, 'no result')", "v", ["bar", "bar", "foo", "foo", "foo"],
     ["no result", "no result", "bar", "bar", "foo"]),
    ("lag(this.v, 2)", "v", ["bar", "bar", "foo", "foo", "foo"], [None, None, "bar", "bar", "foo"]),
    ("latest(this.v)", "v", [None, "foo", None, "bar", None, "foo"],
     [None, "foo", "foo", "bar", "bar", "foo"]),
    ("latest(if this.when { this.v })", "vn",
     [("foo", True), (None, True), ("bar", False), (None, True), ("foo", True)],
     ["foo", "foo", "foo", "foo", "foo"]),
    ("latest(this.v, 'dd')", "kv", [(2, "foo"), (1, None), (1, "bar"), (2, None), (1, "foo")],
     ["foo", "dd", "bar", "foo", "foo"]),
    ("had_changed([this.v, this.w], true)", "vw",
     [("bar", 20), ("baz", 44), ("baz", 44), ("foo", 44), ("foo", None), ("foo", 44), ("baz", 44)],
     [True, True, False, True, False, False, True]),
    ("had_changed([this.v, this.w], false)", "vw",
     [("bar", 20), ("baz", None), ("baz", 44), (None, 44), ("baz", 44), ("baz", 44), (None, None),
      ("baz", 44)],
     [True, True, True, True, True, False, True, True]),
    ("if had_changed(this.v, true) { this.v } else { null }", "kv",
     [(2, "bar"), (1, "bar"), (2, "baz"), (1, "foo")], ["bar", "bar", "baz", "foo"]),
    ("acc_count(this.v)", "v", ["1", 1.5, 1, 1], [1, 2, 3, 4]),
    ("acc_avg(this.v)", "v", [1, 1.0, 1], [1, 1, 1]),
    ("acc_max(this.v)", "v", [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "given", "messages", "expected"), EKUIPER)
def test_a_peer_gives_the_same(call, given, messages, expected) -> None:
    names = [{"k": "k", "v": "v", "w": "w", "n": "when"}[letter] for letter in given]
    mapping = f"root.r = {call}".replace("'", '"')
    states: dict[Any, TransientState] = {}
    found = []
    for message in messages:
        document = dict(zip(names, message if len(names) > 1 else [message], strict=True))
        state = states.setdefault(document.get("k"), TransientState())
        found += rows(f"root = {{}}\n{mapping}", document, state=state)
    assert found == [{"r": one} for one in expected]


CONDITIONS = [(1, False, False), (5, True, False), (4, False, False), (3, False, True),
              (2, False, False)]  # fmt: skip


@pytest.mark.parametrize(
    ("combine", "expected"),
    [
        ("[s.min | this.v, this.v].min()", [0, 5, 4, 3, 0]),
        ("(s.sum | 0) + this.v", [0, 5, 9, 12, 0]),
    ],
)
def test_an_accumulator_begins_and_is_reset_by_conditions(combine, expected) -> None:
    """As eKuiper's `acc_min(v, begin, reset)`: the message of the reset is the last one counted."""
    name = "min" if "min" in combine else "sum"
    mapping = f"""
root.r = accumulate("r", {{"on": false}}, s -> {{
  "on": (s.on || this.begin) && !this.reset,
  "{name}": if s.on || this.begin {{ {combine} }} else {{ null }},
}}).{name} | 0
"""
    messages = [{"v": v, "begin": begin, "reset": reset} for v, begin, reset in CONDITIONS]
    found = rows(mapping, *messages)
    assert [one["r"] for one in found] == expected


def test_a_call_that_is_not_reached_keeps_nothing() -> None:
    """As eKuiper's `OVER (WHEN …)`."""
    mapping = "root = {}\nroot.r = if this.ok { lag(this.v) }"
    values = [{"ok": True, "v": 1}, {"ok": False, "v": 2}, {"ok": True, "v": 3}]
    assert rows(mapping, *values) == [{"r": None}, {}, {"r": 1}]
    assert rows("root = acc_sum(if this > 1 { this })", 1, 2, 1, 3) == [0, 2, 2, 5]


def test_equal_calls_are_different_ones_unless_they_have_a_name() -> None:
    assert rows("root = [lag(this), lag(this)]", 1, 2) == [[None, None], [1, 1]]
    shared = 'root = [lag(value: this, name: "x"), lag(value: this, name: "x")]'
    assert rows(shared, 1, 2) == [[None, 1], [1, 2]]
    assert rows('root = [acc_sum(this, "x"), lag(value: this, name: "x")]', 1, 2) == [
        [1, None],
        [3, 1],
    ]


def test_what_stands_around_a_call_does_not_matter() -> None:
    """A mapping that is changed elsewhere goes on with what it has kept."""
    state = TransientState()
    rows("root.sum = acc_sum(this.v)", {"v": 1}, state=state)
    changed = "root = this\nlet x = acc_count( )\nroot.total = acc_sum(  this.v )\n"
    assert rows(changed, {"v": 2}, state=state) == [{"v": 2, "total": 3}]
    assert rows("root.sum = acc_sum(this.w)", {"w": 2}, state=state) == [{"sum": 2}]


def test_maps_and_loops_share_the_calls_in_them() -> None:
    mapping = 'map m { root = acc_sum(this) }\nroot = this.map_each(x -> x.apply("m"))'
    assert rows(mapping, [1, 2], [3]) == [[1, 3], [6]]


@pytest.mark.parametrize("call", ["acc_sum(this)", "acc_avg(this)", "acc_max(this)"])
def test_only_numbers_are_added(call) -> None:
    with pytest.raises(Exception, match="expected number value, got string"):
        rows(f"root = {call}", "a")


def test_without_a_key_a_call_says_where_it_works() -> None:
    with pytest.raises(Exception, match="lag keeps state by key.*behind the buffer keyed_state"):
        compile_mapping("root = lag(this)").apply([Message(b"1")], 0, Execution(lambda: 0))


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("root = lag(this, 0)", "offset must be from 1 to 10000, got 0"),
        ('root = accumulate("", 0, n -> n)', "name must not be empty"),
    ],
)
def test_arguments_that_cannot_be_are_refused(mapping, message) -> None:
    with pytest.raises(BloblangError, match=message):
        compile_mapping(mapping)


def test_such_a_mapping_is_not_one_of_a_document_alone() -> None:
    mapping = compile_mapping("root = lag(this)")
    assert mapping.uses.keyed_state and not mapping.uses.only_document
    assert mapping.doc_fn is None
    assert [call.text for call in mapping.state_calls] == ["lag(this)"]
