"""Change logs; expectations without a note were asked of r3labs/diff, as Connect uses it."""
# ruff: noqa: E501 - tables of whole documents

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang import BloblangError, compile_mapping
from streamer.bloblang.runtime import changelog
from tests.bloblang.running import run
from tests.examples import examples

TYPES = "failed assignment (line 1):  types do not match (cause count 0)\n"


def log(*changes):
    names = ("Type", "Path", "From", "To")
    return [dict(zip(names, change, strict=True)) for change in changes]


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ({"x": 1}, {"x": 2}, log(("update", ["x"], 1, 2))),
        ({"x": 1}, {"x": 1}, []),
        ({"x": None}, {"x": 1}, log(("update", ["x"], None, 1))),
        ({"x": None}, {}, log(("delete", ["x"], None, None))),
        ({}, {"x": {"y": [1]}}, log(("create", ["x"], None, {"y": [1]}))),
        ({"x": {"y": 1, "z": 2}}, {"x": {"y": 1}}, log(("delete", ["x", "z"], 2, None))),
        (
            [1, 2, 2, 3],
            [2, 3, 5, 6, 7],
            log(
                ("delete", ["0"], 1, None),
                ("update", ["2"], 2, 5),
                ("create", ["3"], None, 6),
                ("create", ["4"], None, 7),
            ),
        ),
        ([None, 1], [1, None, None], log(("create", ["2"], None, None))),
        (
            [[1, 2], [3]],
            [[1], [3, 4]],
            log(("delete", ["0", "1"], 2, None), ("create", ["1", "1"], None, 4)),
        ),
        (5, 6, log(("update", [], 5, 6))),
        ("x", None, log(("delete", [], "x", None))),
        ({"x": 1, "y": 2}, None, log(("delete", ["x"], 1, None), ("delete", ["y"], 2, None))),
        (
            {"a": {"b": 3}, "a.c": 2, "b": 1},
            {},
            log(
                ("delete", ["a"], {"b": 3}, None),
                ("delete", ["a.c"], 2, None),
                ("delete", ["b"], 1, None),
            ),
        ),
        ({"x": True}, {"x": "1"}, None),
        ({"x": {"y": 1}}, {"x": [1]}, None),
        ({"x": 1}, [1], None),
    ],
)
def test_what_differs_between_two_documents(before, after, changes):
    found = run("root = this.a.diff(this.b)", json.dumps({"a": before, "b": after}))
    assert found == f'Error("{TYPES}")' if changes is None else json.loads(found) == changes


def test_spellings_of_a_number_differ():
    found = run("root = this.a.diff(this.b)", '{"a":{"x":1},"b":{"x":1.0}}')
    assert found == '[{"From":1,"Path":["x"],"To":1.0,"Type":"update"}]'


def test_null_has_no_changes():
    assert run("root = this.a.diff(1)", '{"a":null}') == "null"
    assert run("root = this.a.patch([])", '{"a":null}') == "null"


def test_a_literal_number_is_compared_with_one_of_the_document():
    # Connect finds that their types do not match.
    assert run('root = this.diff({"x":1})', '{"x":1}') == "[]"


def test_a_change_log_is_an_array_like_any_other():
    # In Connect it has a type of its own that no method takes.
    mapping = 'root = this.a.diff(this.b).map_each(change -> change.Path.join("."))'
    assert run(mapping, '{"a":{"x":{"y":1}},"b":{"x":{"y":2}}}') == '["x.y"]'


@pytest.mark.parametrize(
    ("value", "changes", "result"),
    [
        ({"x": 1}, [], {"x": 1}),
        ({"x": 1}, None, {"x": 1}),
        ({"x": 1}, log(("update", ["y"], 1, 5)), {"x": 1, "y": 5}),
        ({"x": 1}, log(("delete", ["x"], 1, None)), {}),
        ({"x": 1}, log(("delete", ["y"], 1, None)), {"x": 1}),
        ({"x": {"y": 1, "z": 2}}, log(("delete", ["x", "y"], 1, None)), {"x": {"z": 2}}),
        ([1, 2, 3], log(("update", ["1"], 1, 9)), [1, 9, 3]),
        ({"l": [{"k": 1}]}, log(("create", ["l", "0", "m"], None, 9)), {"l": [{"k": 1, "m": 9}]}),
        ("x", log(("update", [], None, 9)), 9),
        ({"x": 1}, [{"type": "update", "path": ["x"], "to": 2, "Extra": 1}], {"x": 2}),
        ({"x": 1}, [{"Type": "nope", "Path": ["x"], "To": 2}], {"x": 1}),
        ({"x": 1}, [{"Type": "update", "Path": [1], "To": 2}], {"1": 2, "x": 1}),
    ],
)
def test_a_log_changes_a_value(value, changes, result):
    found = run("root = this.a.patch(this.c)", json.dumps({"a": value, "c": changes}))
    assert json.loads(found) == result


@pytest.mark.parametrize(
    ("value", "changes", "result"),
    [
        ([1, 2, 3], log(("create", ["3"], None, 9)), [1, 2, 3, 9]),
        ([1, 2, 3], log(("create", ["1"], None, 9)), [1, 9, 2, 3]),
        ([1], log(("create", ["5"], None, {}), ("update", ["5", "k"], None, 9)), [1, {"k": 9}]),
        ([1], log(("create", ["5"], None, 7), ("delete", ["5"], 7, None)), [1]),
        ([1, 2, 3], log(("delete", ["0"], 1, None)), [2, 3]),
        ([1, 2, 3], log(("delete", ["0"], 1, None), ("delete", ["2"], 3, None)), [2]),
        ({"x": 1}, log(("update", ["x"], 1, None)), {"x": None}),
    ],
)
def test_changes_that_connect_loses_or_dies_of_are_made(value, changes, result):
    found = run("root = this.a.patch(this.c)", json.dumps({"a": value, "c": changes}))
    assert json.loads(found) == result


@pytest.mark.parametrize(
    ("value", "changes", "error"),
    [
        (
            {"x": 1},
            log(("update", ["x", "y"], 1, 5)),
            " reflect: reflect.Value.Set using unaddressable value (cause count 0)\n",
        ),
        (
            [1],
            log(("delete", ["9"], 1, None)),
            " Value index 9 is invalid (cause count 1)\n scanning for Value index (cause count 0)\n",
        ),
        (
            [1],
            log(("update", ["x"], 1, 2)),
            ' invalid index in path. x is not a number (cause count 1)\nstrconv.Atoi: parsing "x": invalid syntax',
        ),
        ({"x": 1}, "x", "'' source data must be an array or slice, got string"),
        ({"x": 1}, {"Type": "update"}, "'' source data must be an array or slice, got map"),
        (
            {"x": 1},
            [{"Path": "x"}],
            "decoding failed due to the following error(s):\n\n'[0].Path' source data must be an array or slice, got string",
        ),
    ],
)
def test_a_log_that_fits_no_value_is_an_error(value, changes, error):
    found = run("root = this.a.patch(this.c)", json.dumps({"a": value, "c": changes}))
    assert found == f'Error("failed assignment (line 1): {error}")'


def test_a_literal_that_is_no_log_is_refused_when_the_mapping_is_read():
    with pytest.raises(BloblangError, match="source data must be an array or slice, got string"):
        compile_mapping('root = this.patch("x")')


def test_the_patched_document_stays_as_it_was():
    mapping = (
        'root.new = this.patch([{"Type":"update","Path":["l","0","k"],"To":2}])\nroot.old = this'
    )
    assert json.loads(run(mapping, '{"l":[{"k":1}]}')) == {
        "new": {"l": [{"k": 2}]},
        "old": {"l": [{"k": 1}]},
    }


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=4)
    ),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def in_any_order(value):
    """Return a value whose arrays are sorted: those of a change log have no order."""
    if isinstance(value, dict):
        return {key: in_any_order(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(map(in_any_order, value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, DOCUMENTS)
def test_a_patch_with_what_differs_gives_the_other_document(before, after):
    kept = json.dumps(before)
    try:
        changes = changelog.diff(before, after)
    except changelog.QueryError:
        return
    assert in_any_order(changelog.patch(before, changes)) == in_any_order(after)
    assert json.dumps(before) == kept


VALUES = st.recursive(
    st.sampled_from([None, True, 1, 1.0, 2.5, "1", "", b"ab", b"ba", []]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)


@settings(max_examples=examples(100, 300), deadline=None)
@given(VALUES, VALUES)
def test_elements_match_just_when_nothing_differs_between_them(left, right):
    try:
        same = not changelog.diff({"x": left}, {"x": right})
    except changelog.QueryError:  # they are of different types
        same = False
    assert same is (changelog._comparison_key(left) == changelog._comparison_key(right))


def test_long_arrays_without_a_common_element_are_compared_in_no_time():
    before, after = ([{"x": i} for i in range(first, first + 20_000)] for first in (0, 50_000))
    began = time.process_time()
    assert len(changelog.diff(before, after)) == 20_000
    assert time.process_time() - began < 2
