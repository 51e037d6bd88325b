"""What our own methods make of arrays, and what they refuse."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.bloblang import BloblangError, compile_mapping
from tests.bloblang.running import run

PLAIN = st.one_of(st.integers(-9, 9), st.floats(-9, 9), st.sampled_from([2**53 + 1, 2**53]))
TEXT = st.text(st.characters(codec="utf-8"), max_size=3)


@given(st.one_of(st.lists(PLAIN), st.lists(TEXT)), st.integers(1, 5))
def test_top_k_is_the_head_of_the_descending_order(array, count):
    found = json.loads(run(f"root = this.top_k({count})", json.dumps(array)))
    assert found == sorted(array, reverse=True)[:count]


def test_of_elements_that_are_equal_by_their_key_the_earlier_one_comes_first():
    given = '[{"i":1,"k":"a"},{"i":2,"k":"b"},{"i":3,"k":"b"}]'
    assert run("root = this.top_k(2, e -> e.k).map_each(e -> e.i)", given) == "[2,3]"


def test_numbers_keep_their_text_where_they_stand_in_elements():
    assert run("root = this.top_k(1, e -> e.k)", '[{"k":1.50},{"k":1}]') == '[{"k":1.50}]'


def test_what_is_not_a_number_is_less_than_all_that_are():
    mapping = "root = this.top_k(3, x -> x.log()).map_each(x -> x)"
    assert run(mapping, "[-1,2,1]") == "[2,1,-1]"


@pytest.mark.parametrize(
    ("mapping", "given", "error"),
    [
        ("this.top_k(1)", '"a"', 'expected array value, got string from field `this` ("a")'),
        ("this.top_k(1)", "[1,null]", "field `this`: index 1: expected string or number value, "
         "got null"),
        ("this.top_k(1)", '[1,"a"]', "field `this`: the elements must be all numbers or all "
         "strings, got both"),
        ("this.top_k(1, x -> x.a + 1)", '[{"a":1},{"a":[]}]', "field `this`: index 1: cannot add "
         "types array (from field `x.a`) and number (from number literal)"),
        ("this.top_k(this.length())", "[]", "count must be at least 1, got 0"),
        ("this.count_by()", '["a",{}]', "field `this`: index 1: expected string, number or bool "
         "value, got object"),
        ("this.count_by(x -> x.a.uppercase())", '[{"a":3}]', "field `this`: index 0: expected "
         "string value, got number from field `x.a` (3)"),
        ("this.count_by()", "{}", "expected array value, got object from field `this`"),
    ],
)  # fmt: skip
def test_what_cannot_be_ordered_or_counted_is_an_error(mapping, given, error):
    assert run(f"root = {mapping}", given) == f'Error("failed assignment (line 1): {error}")'


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("top_k(0)", "count must be at least 1, got 0"),
        ("top_k()", "missing parameter: count"),
        ('top_k("a")', 'field count: expected number value, got string ("a")'),
        ("top_k(1, x -> x, 2)", "wrong number of arguments, expected 2, got 3"),
        ("count_by(1, 2)", "wrong number of arguments, expected 1, got 2"),
    ],
)
def test_arguments_are_checked_when_the_mapping_is_read(call, error):
    with pytest.raises(BloblangError) as caught:
        compile_mapping(f"root = this.{call}")
    assert error in str(caught.value)


def test_values_are_counted_under_their_text():
    given = '[1,1.0,"1",true,"true",1.50,1e3]'
    assert run("root = this.count_by()", given) == '{"1":3,"1.5":1,"1000":1,"true":2}'


@given(st.lists(TEXT))
def test_the_counts_are_of_all_elements(array):
    found = json.loads(run("root = this.count_by()", json.dumps(array)))
    assert found == {key: array.count(key) for key in array}


LATER, EARLIER = [f'"2025-01-{day}".ts_parse("2006-01-02")' for day in (17, 16)]


@pytest.mark.parametrize(
    ("mapping", "result"),
    [
        (f"[{LATER}, {EARLIER}].sort()", '["2025-01-16T00:00:00Z","2025-01-17T00:00:00Z"]'),
        (f'["2025", {EARLIER}, "2026"].sort()', '["2025","2025-01-16T00:00:00Z","2026"]'),
        (f"[{LATER}, {EARLIER}].sort_by(x -> x).index(0).string()", "2025-01-16T00:00:00Z"),
        (f"[{EARLIER}, {LATER}, {EARLIER}].top_k(1)", '["2025-01-17T00:00:00Z"]'),
        (f"[{EARLIER}, {LATER}, {EARLIER}].unique().length()", "2"),
        (f'[{EARLIER}, "2025-01-16T00:00:00Z"].unique().length()', "1"),
        (f'[{EARLIER}, "2025-01-16T00:00:00Z"].count_by()', '{"2025-01-16T00:00:00Z":2}'),
        (f"[{EARLIER}].sort().index(0).type()", "timestamp"),
        (f"[{EARLIER}, 1].sort()", 'Error("failed assignment (line 1): sort element 0: expected '
         'number value, got timestamp")'),
    ],
)  # fmt: skip
def test_times_are_told_apart_and_ordered_by_their_texts(mapping, result):
    assert run(f"root = {mapping}") == result
