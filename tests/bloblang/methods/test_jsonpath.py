"""JSONPath; expectations without a note were asked of Connect's libraries."""
# ruff: noqa: E501 - tables of whole documents

import json

import pytest

from streamer.bloblang import BloblangError, compile_mapping
from streamer.bloblang.runtime import jsonpath_steps
from tests.bloblang.running import run


def found(path, document):
    return run(
        f"root.v = this.json_path({json.dumps(path, ensure_ascii=False)})", json.dumps(document)
    )


@pytest.mark.parametrize(
    ("path", "document", "value"),
    [
        ("$", {"a": 1}, {"a": 1}),
        ("$.a", {"a": 1}, 1),
        ("$.a[0]", {"a": [1, 2]}, 1),
        ("$.a['b']", {"a": {"b": 1}}, 1),
        ("$['a'][\"b c\"]", {"a": {"b c": 1}}, 1),
        ("$['a\\'b']", {"a'b": 1}, 1),
        ("$.é", {"é": 1}, 1),
        ("$.a['0']", {"a": [5]}, 5),
        ("$.a[0]", {"a": {"0": 5}}, 5),
        ("$.a[(1+1)]", {"a": [1, 2, 3]}, 3),
        ("$.a[0,1]", {"a": [1, 2]}, [1, 2]),
        ("$.a['x','q']", {"a": {"x": 1, "y": 2}}, [1]),
        ("$.a[*]", {"a": [1, 2]}, [1, 2]),
        ("$.a.*", {"a": [1, 2]}, [1, 2]),
        ("$..a", {"a": {"a": 1}, "b": [{"a": 2}, {"c": {"a": 3}}]}, [{"a": 1}, 1, 2, 3]),
        ("$..*", {"b": [1, {"c": 2}]}, [[1, {"c": 2}], 1, {"c": 2}, 2]),
        ("$..[0]", {"b": [1, {"c": [5]}]}, [1, 5]),
        ("$..a..b", {"a": {"b": 1, "c": {"b": 2}}}, [1, 2]),
        ("$.a[1:]", {"a": [1, 2, 3, 4]}, [2, 3, 4]),
        ("$.a[:2]", {"a": [1, 2, 3, 4]}, [1, 2]),
        ("$.a[-2:]", {"a": [1, 2, 3, 4]}, [3, 4]),
        ("$.a[0:4:2]", {"a": [1, 2, 3, 4]}, [1, 3]),
        ("$.a[::-1]", {"a": [1, 2, 3, 4]}, [4, 3, 2, 1]),
        ("$.a[3:0:-1]", {"a": [1, 2, 3, 4]}, []),
        (
            "$.a[*].b[*].c",
            {"a": [{"b": [{"c": 1}, {"c": 2}]}, {"b": [{"c": 3}, {"d": 2}]}]},
            [1, 2, 3],
        ),
        (
            "$.a[?(@.x)]",
            {"a": [{"x": True}, {"x": None}, {"x": "a"}, {"x": "true"}, {}]},
            [{"x": True}, {"x": "true"}],
        ),
        ("$.a[?(!@.x)]", {"a": [{"x": True}, {"x": None}, {"x": "a"}, {}]}, [{"x": None}]),
        ("$.a[?(@.x==null)]", {"a": [{"x": "a"}, {"x": None}, {}]}, [{"x": None}]),
        ("$.a[?(@.x=='a' || @.x==\"b\")].x", {"a": [{"x": "a"}, {"x": "b"}, {}]}, ["a", "b"]),
        ("$.a[?(@.x=~'b.*')]", {"a": [{"x": "abc"}, {"x": "c"}, {}]}, [{"x": "abc"}]),
        ("$.a[?(@.x!~'b.*')]", {"a": [{"x": "abc"}, {"x": "c"}, {}]}, [{"x": "c"}]),
        ("$.a[?(@.x in ['a','b'])]", {"a": [{"x": "a"}, {"x": "c"}, {}]}, [{"x": "a"}]),
        ("$.a[?@.x>1]", {"a": [{"x": 1}, {"x": 2}, {"y": 3}]}, [{"x": 2}]),
        ("$.a[?(@>1)]", {"a": [1, 2, 3]}, [2, 3]),
        ("$.a[?(@.x > $.min)]", {"min": 2, "a": [{"x": 1}, {"x": 3}, {}]}, [{"x": 3}]),
        ("$.a > 1", {"a": 1}, False),
        ("1 + 2 * 3 ** 2 - -1", {}, 20),
        ("7 % 4 == 3 && !(1 > 2)", {}, True),
        ("$.a ? 'x' : 'y'", {"a": True}, "x"),
        ("$.a ?? 'y'", {"a": None}, "y"),
        ("{'x': $.a}", {"a": True}, {"x": True}),
        ("[$.a, $.b]", {"a": True, "b": 2}, [True, 2]),
        ("a", {"a": True}, True),
        ("@", {"a": 1}, None),
    ],
)
def test_a_path_leads_to_a_value(path, document, value):
    assert json.loads(found(path, document)) == {"v": value}


@pytest.mark.parametrize(
    ("path", "document", "value"),
    [
        (
            "$.a[?(@.price<10)].t",
            {"a": [{"price": 8.95, "t": "x"}, {"price": 12, "t": "y"}]},
            ["x"],
        ),
        (
            "$.a[?(@.x==1)].y",
            {"a": [{"x": 1, "y": 1}, {"x": 1.0, "y": 2}, {"x": "1", "y": 3}, {}]},
            [1, 2, 3],
        ),
        ("$.a[?(@.x*2 > 4)]", {"a": [{"x": 1}, {"x": 3}, {}]}, [{"x": 3}]),
        ("$.a + 1", {"a": 1}, 2),
        (
            "$.a[?(@ == 9007199254740993)]",
            {"a": [9007199254740993, 9007199254740992]},
            [9007199254740993],
        ),
    ],
)
def test_numbers_of_a_document_are_numbers(path, document, value):
    # Connect compares their texts: 8.95 is not less than 10 there, and 1 is never 1.
    assert json.loads(found(path, document)) == {"v": value}


@pytest.mark.parametrize(
    ("path", "document", "error"),
    [
        ("$.b", {"a": 1}, "unknown key b"),
        (
            "$.a.b",
            {"a": 1},
            "unsupported value type json.Number for select, expected map[string]interface{} or []interface{}",
        ),
        (
            "$.a.b",
            {"a": None},
            "unsupported value type <nil> for select, expected map[string]interface{} or []interface{}",
        ),
        ("$.a[-1]", {"a": [1, 2]}, "index -1 out of bounds"),
        ("$.a[5]", {"a": [1, 2]}, "index 5 out of bounds"),
        (
            "$.a.b",
            {"a": [{"b": 1}]},
            "could not select value, invalid key: expected number but got b (string)",
        ),
        ("$.a-b", {"a-b": True}, "unknown key a"),
    ],
)
def test_a_path_that_leads_nowhere_is_an_error(path, document, error):
    assert found(path, document) == f'Error("failed assignment (line 1): {error}")'


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("", "unexpected EOF while scanning extensions"),
        (
            "$.",
            '$.\t:1:3 - 1:3 unexpected EOF while scanning JSON select expected Ident, "." or "*"',
        ),
        ("$[", "$[\t:1:3 - 1:3 unexpected EOF while scanning extensions"),
        ("$.a b", "$.a b\t:1:5 - 1:6 unexpected Ident while scanning operator"),
        ("$.a.0", "$.a.0\t:1:4 - 1:6 unexpected Float while scanning operator"),
    ],
)
def test_what_is_no_path_is_refused_when_the_mapping_is_read(path, error):
    with pytest.raises(BloblangError) as refused:
        compile_mapping(f"root = this.json_path({json.dumps(path)})")
    text = str(refused.value)
    assert "evaluating json path expression: parsing error: " in text
    assert text.endswith(error)


@pytest.mark.parametrize("path", ["(" * 50_000, "-" * 50_000, "$" + "[?(@" * 20_000, "[" * 50_000])
def test_a_path_nested_too_deep_is_refused(path):
    with pytest.raises(BloblangError, match="json path"):
        compile_mapping(f"root = this.json_path({json.dumps(path)})")


def test_a_path_may_come_from_the_document():
    assert run("root = this.json_path(this.p)", '{"p":"$.q","q":5}') == "5"
    refused = run("root = this.json_path(this.p)", '{"p":"$."}')
    assert refused.startswith('Error("failed assignment (line 1): evaluating json path expression')


def test_everything_below_is_found_however_deep():
    from streamer.bloblang.methods.jsonpath import json_path

    value = leaf = {}
    for _ in range(5000):
        leaf["a"] = leaf = {}
    assert len(json_path("$..a")(value)) == 5000


def test_what_is_found_may_be_changed_without_changing_the_document():
    mapping = 'root.x = this.json_path("$.a")\nroot.x.b = 2\nroot.y = this.a'
    assert json.loads(run(mapping, '{"a":{"b":1}}')) == {"x": {"b": 2}, "y": {"b": 1}}


@pytest.mark.parametrize("path", ["$" + "..a" * 30, "$..[?(@" + "..a" * 30 + ")]"])
def test_a_path_that_multiplies_what_it_finds_is_stopped(path, monkeypatch):
    monkeypatch.setattr(jsonpath_steps, "MAX_VALUES", 50_000)
    document = {}
    for _ in range(60):
        document = {"a": document}
    assert "the expression leads past more than 50000 values" in found(path, document)
    assert found("$.a.b", {"a": {"b": 1}}) == '{"v":1}'
