"""parse_yaml and format_yaml, as Go's yaml.v3 reads and writes plain types."""
# ruff: noqa: E501 - tables of whole error texts

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.yaml_reader import read_yaml
from streamer.bloblang.golib.yaml_writer import write_yaml
from streamer.core.json.parse import parse_json
from tests.bloblang.running import run
from tests.examples import examples


def parsed(text):
    return run("root = this.a.parse_yaml()", json.dumps({"a": text}))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("foo: bar", '{"foo":"bar"}'),
        ("", "null"),
        ("# only", "null"),
        ("a: 1\n---\nb: 2", '{"a":1}'),
        ("[0x1f, 0o17, 017, 0b101, 1_000, +5, -0, 08]", "[31,15,15,5,1000,5,0,8]"),
        ("[1.50, 1e3, .5, 1., 1e400, 1:30]", '[1.5,1000,0.5,1,"1e400","1:30"]'),
        ("[18446744073709551615, 18446744073709551616]", "[18446744073709551615,18446744073709552000]"),
        ("[~, null, Null, true, yes, off, y]", '[null,null,null,true,"yes","off","y"]'),
        ("[2020-01-01, 2020-1-2 3:4:5.25, 2001-12-14t21:59:43.10-05:00]", '["2020-01-01T00:00:00Z","2020-01-02T03:04:05.25Z","2001-12-14T21:59:43.1-05:00"]'),
        ("2020-01-01 10:00:00 -5", "2020-01-01 10:00:00 -5"),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}", '{"a":{"b":1},"c":{"b":1,"d":2}}'),
        ("{<<: [{a: 1, b: 1}, {a: 2, c: 2}], c: 3}", '{"a":1,"b":1,"c":3}'),
        ("!!str 5", "5"),
        ("a: !mine bar", '{"a":"bar"}'),
        ("!!binary aGVsbG8=", "hello"),
        ("1: x\ntrue: y\nnull: z", '{"1":"x","null":"z","true":"y"}'),
        ("a: |\n  text\n  more\n", '{"a":"text\\nmore\\n"}'),
    ],
)  # fmt: skip
def test_yaml_is_read_as_by_yaml_v3(text, result):
    assert parsed(text) == result


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: b: c", "mapping values are not allowed in this context"),
        ("a:\n\tb: 1", "line 2: found character that cannot start any token"),
        ('"unclosed', "found unexpected end of stream"),
        ("a: 1\na: 2", 'unmarshal errors:\n  line 2: mapping key "a" already defined at line 1'),
        ("a: *x", "unknown anchor 'x' referenced"),
        ("&x [*x]", "anchor 'x' value contains itself"),
        ("[a, b]: c", 'invalid map key: []interface {}{"a", "b"}'),
        ("!!int 5.5", "cannot decode !!float `5.5` as a !!int"),
        ("!!bool maybe", "cannot decode !!str `maybe` as a !!bool"),
        ("a: {<<: 5}", "map merge requires map or sequence of maps as the value"),
        ("[" * 400 + "]" * 400, "exceeded max depth of 300"),
    ],
)
def test_what_is_no_yaml_is_told_in_benthos_words(text, error):
    found = parsed(text)
    assert found == (
        'Error("failed assignment (line 1): field `this.a`: failed to parse value as YAML: '
        f'yaml: {error}")'
    )


def test_aliases_cannot_grow_without_bound():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    assert "document contains excessive aliasing" in parsed("\n".join(lines))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"foo": "bar"}, "foo: bar\n"),
        ({"a": ["x", ["y", []], {}]}, "a:\n    - x\n    - - \"y\"\n      - []\n    - {}\n"),
        ([{"j": "1", "k": ["z"]}], "- j: \"1\"\n  k:\n    - z\n"),
        ({"a10": 1, "a2": 2, "B": None, "_": True}, "_: true\nB: null\na2: 2\na10: 1\n"),
        (["yes", "null", "1", "1:30", "2020-01-01", "<<", "", " ", "a: b", "#a"], '- "yes"\n- "null"\n- "1"\n- "1:30"\n- "2020-01-01"\n- <<\n- ""\n- \' \'\n- \'a: b\'\n- \'#a\'\n'),
        (["a\nb", "a\n", " a\n", "a\tb", "\U0001f600", "\x01"], '- |-\n  a\n  b\n- |\n  a\n- " a\\n"\n- "a\\tb"\n- "\\U0001F600"\n- "\\x01"\n'),
        ([1.5, 1e21, 1e6, 100000.0, float("inf"), 18446744073709551615], "- 1.5\n- 1e+21\n- 1e+06\n- 100000\n- .inf\n- 18446744073709551615\n"),
        ({"": "x", "a\nb": ["c"]}, '"": x\n? |-\n    a\n    b\n:   - c\n'),
        (b"hi", "- 104\n- 105\n"),
        ("x", "x\n"),
        (None, "null\n"),
    ],
)  # fmt: skip
def test_yaml_is_written_as_by_yaml_v3(value, text):
    assert write_yaml(value).decode() == text


def test_numbers_of_a_document_stay_numbers():
    assert run("root = this.format_yaml()", '{"a":1.50,"b":5}') == "a: 1.50\nb: 5\n"


def test_a_timestamp_is_written_plain():
    mapping = 'root = "2020-01-01T00:00:00.5Z".ts_parse("2006-01-02T15:04:05Z07:00").format_yaml()'
    assert run(mapping) == "2020-01-01T00:00:00.5Z\n"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["yes", "0x1f", "1e3", "- a", "a: b", "\n", "\na", "a\n\n", "\ta\nb", "2020-1-1", "=", "<<"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(80, 300), deadline=None)
@given(VALUES)
def test_what_is_written_is_read_again(value):
    assert read_yaml(write_yaml(value)) == value


@settings(max_examples=examples(60, 200), deadline=None)
@given(st.text(st.sampled_from("ab1:-? \n\t[]{},&*x!|>'\"%#<"), max_size=24))
def test_any_text_gives_a_value_or_an_error(text):
    try:
        value = read_yaml(text.encode())
    except QueryError as e:
        assert str(e).startswith("failed to parse value as YAML: yaml: ")
    else:
        parse_json(json.dumps(value, default=str).encode())
