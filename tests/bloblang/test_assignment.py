"""Assignments: paths, deletions, metadata, variables; and what is shared is never changed."""
# ruff: noqa: E501 - tables of whole error texts

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang import compile_mapping
from streamer.core.message import Message
from streamer.core.value import DELETED, NOTHING
from tests.bloblang.running import execution, run
from tests.examples import examples

DOCUMENT = '{"a":5,"b":"x","c":null,"d":[1,2,3],"e":{"f":1.5,"g":true}}'


@pytest.mark.parametrize(
    ("path", "segment", "field"),
    [("a.0.b", 1, "0"), ("a.0.b.c", 1, "0"), ("a.0.1", 1, "0"), ("a.1.0.c", 2, "0")],
)
def test_a_null_in_an_array_is_blamed_by_its_own_place(path, segment, field):
    found = run(f"root.a = [null, [null]]\nroot.{path} = 1")
    reason = f"failed to resolve path segment '{segment}': field '{field}' was not found"
    line = "failed assignment (line 2)"
    assert found == f'Error("{line}: unable to set target path {path}: {reason}")'


@pytest.mark.parametrize(
    ("mapping", "result"),
    [
        ("root.x.y.z = 1", '{"x":{"y":{"z":1}}}'),
        ('root."x.y" = 1', '{"x.y":1}'),
        ("foo.bar = 1", '{"foo":{"bar":1}}'),
        ("root = this.e\nroot.f = 9", '{"f":9,"g":true}'),
        ("root = this.d\nroot.0 = 9", "[9,2,3]"),
        ('root = this.d\nroot."-" = 9', "[1,2,3,9]"),
        ("root = this.e\nroot.f = deleted()", '{"g":true}'),
        ("root = this.d\nroot.0 = deleted()", "[1,2,3]"),
        ("root.d = this.d\nroot.d.0 = deleted()", '{"d":[2,3]}'),
        ("root.a = 1\nroot.b = root\nroot.a = 2", '{"a":2,"b":{"a":1}}'),
        ("root.a.b = 1\nroot.c = root.a\nroot.a.b = 2", '{"a":{"b":2},"c":{"b":1}}'),
        (
            "let v = this.e\nroot.p = $v\nroot.p.f = 2\nroot.q = $v.f",
            '{"p":{"f":2,"g":true},"q":1.5}',
        ),
        ("root = deleted()\nroot = 5", "5"),
        ("root.a = 1\nroot = nothing()", '{"a":1}'),
        ("let x = 1\nlet x = nothing()\nroot.x = $x", '{"x":1}'),
        ("root = null", "null"),
        ("root = deleted()", "<deleted>"),
        ('root = "text"', "text"),
        ('meta a = 1\nroot.a = @a\nroot.b = metadata("a")', '{"a":1,"b":null}'),
        ('meta = {"q":1}\nroot = @', '{"q":1}'),
        ("meta k = deleted()\nroot = @", "{}"),
        ('root.a = meta("k")\nroot.b = @"k"', '{"a":"v","b":"v"}'),
    ],
)
def test_a_mapping_makes_a_new_root(mapping, result):
    assert run(mapping, DOCUMENT, meta={"k": "v"}) == result


def test_nothing_assigned_leaves_the_bytes_as_they_came():
    assert run("meta a = 1", '{ "b" : 1.50 }') == '{ "b" : 1.50 }'


def test_onto_starts_with_the_document_and_sees_its_own_metadata():
    mapping = 'root.a = deleted()\nmeta k = 5\nroot.k = meta("k")'
    assert run(mapping, '{"a":1,"b":2}', onto=True) == '{"b":2,"k":"5"}'
    assert run("root.a = 1", "no document", onto=True) == '{"a":1}'


@pytest.mark.parametrize(
    ("mapping", "error"),
    [
        ("root = this\nroot.b.c = 1", "(line 2): unable to set target path b.c as the value of b was a non-object type (string)"),
        ("root = this.b\nroot.c = 1", "(line 2): unable to set target path c as the value of the root was a non-object type (string)"),
        ("root = deleted()\nroot.a = 1", "(line 2): unable to set target path a as the value of the root was a non-object type (delete)"),
        ("root = this\nroot.d.9 = 1", "(line 2): unable to set target path d.9: failed to resolve path segment '1': found array but index '9' exceeded target array size of '3'"),
        ("root.a = $nope", "(line 1): variable 'nope' undefined"),
        ("meta = 5", "(line 1): setting root meta object requires object value, received: int64"),
    ],
)  # fmt: skip
def test_an_assignment_that_cannot_be_made_says_why(mapping, error):
    assert run(mapping, DOCUMENT) == f'Error("failed assignment {error}")'


PATHS = st.lists(st.sampled_from(["a", "b", "e", "f", "d", "0", "-"]), min_size=1, max_size=3)
VALUES = st.sampled_from(
    ["1", "this", "this.e", "root", "root.e", "root.a", "deleted()", '{"a":{}}']
)
STATEMENTS = st.lists(st.tuples(PATHS, VALUES), min_size=1, max_size=6)


def plainly(statements, document):
    """Assign with a full copy each time: what copy on write must give as well."""

    def find(value, path):
        for part in path:
            value = value.get(part) if type(value) is dict else None
        return value

    root = NOTHING
    for path, text in statements:
        head, *rest = text.split(".")
        value = {"this": document, "root": root}.get(head)
        if head in ("this", "root"):
            value = find(value, rest) if rest else value
        else:
            value = {"1": 1, "deleted()": DELETED, '{"a":{}}': {"a": {}}}[text]
        if value is NOTHING:
            continue
        value = value if value is DELETED else copy.deepcopy(value)
        root = {} if root is NOTHING or root is None else root
        target = root
        if value is DELETED:
            for part in path[:-1]:
                target = target.get(part) if type(target) is dict else None
            if type(target) is dict:
                target.pop(path[-1], None)
            continue
        for part in path[:-1]:
            if type(target) is dict and target.get(part) is None:
                target[part] = {}
            target = target.get(part) if type(target) is dict else None
        if type(target) is not dict:
            return None
        target[path[-1]] = value
    return root


@settings(max_examples=examples(40, 150), deadline=None)
@given(STATEMENTS.filter(lambda all_: not any({"0", "-", "d"} & set(path) for path, _ in all_)))
def test_sharing_cannot_be_told_from_copying(statements):
    document = {"a": 1, "e": {"f": {"a": 2}, "b": {}}}
    before = copy.deepcopy(document)
    mapping = "\n".join(
        "root." + ".".join(f'"{part}"' for part in path) + f" = {value}"
        for path, value in statements
    )
    wanted = plainly(statements, document)
    message = Message.from_value(document)
    if wanted is not None:
        found = compile_mapping(mapping).query([message], 0, execution())
        assert found == wanted or found is wanted
    else:
        assert "unable to set target path" in run(mapping, message.raw.decode())
    assert document == before
