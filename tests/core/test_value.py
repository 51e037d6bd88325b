"""JSON in and out, numbers kept to the letter, the names of types."""

import json
import math
import pickle
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core.json.dump import dump_json, dump_json_each
from streamer.core.json.number_spelling import has_long_number, has_odd_number
from streamer.core.json.parse import parse_json
from streamer.core.timestamps import Timestamp
from streamer.core.value import DELETED, NOTHING, Number, format_float, format_json_float, type_name
from tests.examples import examples


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1.50}',
        "1.0",
        "[1e3,2E5]",
        '{"a":123456789012345678901234567890}',
        '{"a":9223372036854775808}',
        '{"a":0.1234567890123456789}',
        '{"a":0.00001}',
        '{"a":-0.0}',
        '{"a":100.0,"b":"10:00:00.500Z"}',
        '{"a":1700000000123456789}',
    ],
)
def test_a_number_keeps_its_spelling(text):
    assert dump_json(parse_json(text.encode())).decode() == text


@settings(max_examples=examples(100, 300), deadline=None)
@given(st.from_regex(r"\A-?(0|[1-9][0-9]{0,22})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?\Z"))
def test_any_number_keeps_its_spelling_wherever_it_stands(number):
    if number == "-0":  # Python has no such integer
        return
    spread = '{"a" :\r\n\t%s\n}', "[\n%s\n,\n%s]".replace("%s", "0", 1)
    for template in ('{"a":%s}', "[1,%s]", ' { "x" : [ %s ] , "y":"z" }', "%s", "\n%s\t", *spread):
        text = template % number
        document = parse_json(text.encode())
        assert dump_json(document).decode() == json.dumps(
            json.loads(text.replace(number, '"@"')), separators=(",", ":"), sort_keys=True
        ).replace('"@"', number)


def test_a_kept_number_is_a_plain_one_to_arithmetic():
    value = parse_json(b"1.50")
    assert isinstance(value, Number)
    assert type(value + 0) is float
    assert value == 1.5


@pytest.mark.parametrize(
    "raw",
    [
        b'{"id":"806e-4067","t":"2021-08-07T09:49:35.500Z","n":3}',
        b'{"a":45.25,"b":[1,-2]}',
        b'{"price":12.0625,"sku":"  7e4bc ","n":10}',
    ],
)
def test_ordinary_documents_are_not_searched_for_nothing(raw):
    assert not has_odd_number(raw)
    assert not has_long_number(raw)


def test_what_is_no_document_is_refused_with_words():
    with pytest.raises(ValueError, match="^message is empty$"):
        parse_json(b"")
    with pytest.raises(ValueError, match="^invalid character 'o' in literal null"):
        parse_json(b"nope")


def test_what_is_no_text_is_replaced_as_in_go():
    assert parse_json(b'{"a":"x\xffy"}') == {"a": "x\ufffdy"}
    assert parse_json(b'{"a":"\\ud800 \\ud83d\\ude00"}') == {"a": "\ufffd \U0001f600"}


def test_a_number_beyond_any_float_keeps_its_spelling():
    assert dump_json(parse_json(b'{"a":1e400}')) == b'{"a":1e400}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [None, True]}, '{"a":[null,true],"b":1}'),
        ("<&>é", '"<&>é"'),
        ("\u2028\u2029\x01\n", '"\\u2028\\u2029\\u0001\\n"'),
        ({"x": 15.0, "y": [2.0, 0.5]}, '{"x":15,"y":[2,0.5]}'),
        ([1e21, 1e20, 1e-7, 1e-6, -0.0], "[1e+21,100000000000000000000,1e-7,0.000001,-0]"),
        ({"a": 1e16}, '{"a":10000000000000000}'),
        ({"a": 1.5e-6, "b": "e-6"}, '{"a":0.0000015,"b":"e-6"}'),
        ([-5, 9.99e-6], "[-5,0.00000999]"),
        (1e19, "10000000000000000000"),
        ({"text": "15.0,", "f": 1.5}, '{"f":1.5,"text":"15.0,"}'),
        (b"abc", '"YWJj"'),
        (Timestamp(1_500_000_000), '"1970-01-01T00:00:01.5Z"'),
        ([DELETED, NOTHING], "[null,null]"),
        (10**30, "1" + "0" * 30),
    ],
)
def test_values_are_written_as_go_writes_them(value, text):
    assert dump_json(value).decode() == text


@settings(max_examples=examples(100, 300), deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_float_is_written_as_go_writes_it(value):
    assert dump_json({"a": [value], "b": value}).decode() == (
        f'{{"a":[{format_json_float(value)}],"b":{format_json_float(value)}}}'
    )


def written(value):
    """Return what Go writes, by a way of its own."""
    match value:
        case Number():
            return value.text
        case float():
            return format_json_float(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{','.join(map(written, value))}]"
        case dict():
            return f"{{{','.join(f'{written(k)}:{written(value[k])}' for k in sorted(value))}}}"
    return json.dumps(value)


# What looks like a float where it is none, and what hides where strings begin and end.
TRICKY = st.text(st.sampled_from('12.0e-5,]}[:"\\ a'), max_size=12)
NUMBERS = st.sampled_from(["1.0", "-25.0", "1.50", "1e3", "2.0e5", "10.00"]).map(Number)
FLOATS = st.integers(-999, 999).map(float) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | FLOATS | NUMBERS | TRICKY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TRICKY, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(100, 300), deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=3))
def test_values_are_written_alike_alone_and_together(values):
    expected = [written(value) for value in values]
    assert [dump_json(value).decode() for value in values] == expected
    assert [out.decode() for out in dump_json_each(values)] == expected


def test_values_of_which_one_is_odd_are_written_together():
    assert dump_json_each([[1.0], 10**30, "\u2028", b"abc"]) == [
        b"[1]",
        b"1" + b"0" * 30,
        b'"\\u2028"',
        b'"YWJj"',
    ]


@pytest.mark.parametrize("text", ['{"a":0.5696619631433499}', '{ "a" : 0.5696619631433499 }'])
def test_a_float_with_all_its_digits_is_read_by_orjson(text):
    assert type(parse_json(text.encode())["a"]) is float


def test_what_json_has_no_form_for_is_refused():
    with pytest.raises(ValueError, match="no JSON form|not JSON serializable"):
        dump_json({"a": object()})


@settings(max_examples=examples(60, 200), deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_floats_spelling_gives_the_float_back(value):
    assert float(format_json_float(value)) == value
    assert float(format_float(value)) == value
    assert math.copysign(1, float(format_json_float(value))) == math.copysign(1, value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e6, "1e+06"), (123456.0, "123456"), (0.0001, "0.0001"), (0.00001, "1e-05"), (1.5, "1.5")],
)
def test_a_float_as_text_turns_to_an_exponent_where_gos_does(value, text):
    assert format_float(value) == text


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        (True, "bool"),
        (1, "number"),
        (1.5, "number"),
        (Number("1.0"), "number"),
        ("", "string"),
        (b"", "bytes"),
        ([], "array"),
        ({}, "object"),
        (Timestamp(0), "timestamp"),
        (DELETED, "delete"),
        (NOTHING, "nothing"),
        (object(), "unknown"),
    ],
)
def test_every_type_has_its_name(value, name):
    assert type_name(value) == name


def test_a_number_is_pickled_with_its_value_which_may_be_longer_than_its_text():
    number = Number("0.1", 0.10000000149011612)
    again = pickle.loads(pickle.dumps(number))
    assert (again.text, float(again)) == ("0.1", 0.10000000149011612)


_GROWTH = """
import resource
from streamer.core.message import Message
from streamer.core.json.dump import dump_json, dump_json_each
from streamer.window.pack.metadata_codec import encode_meta

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

kept, before = [], peak()
{kept}
print(peak() - before)
"""


@pytest.mark.parametrize(
    "kept",
    [
        "for i in range(100_000): kept.append(Message.from_value({'a': i})); kept[-1].raw",
        "for i in range(100_000): kept.append(dump_json({'a': i}))",
        "for i in range(100_000): kept.append(dump_json({'a': i / 7, 'b': 1e20}))",
        "for i in range(100_000): kept.append(encode_meta({'a': 'b'}))",
        "for i in range(1_000): kept += dump_json_each([{'a': n} for n in range(100)])",
        "for i in range(1_000): kept += dump_json_each([{'a': n, 'b': 1e20} for n in range(100)])",
    ],
)
def test_small_documents_take_little_more_than_their_bytes(kept):
    # In a process of its own: what earlier tests have given back would hide the growth.
    code = _GROWTH.replace("{kept}", kept)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 40_000_000
