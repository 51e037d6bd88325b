"""Where two values or two texts differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json
from streamer.tools.unit_tests.difference import (
    find_differences,
    format_differences,
    format_text_difference,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner),
    max_leaves=8,
)


def equal(left: Any, right: Any) -> bool:
    """JSON's equality in its plainest form: numbers by value, and no number is a boolean."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


@given(VALUES, VALUES)
def test_values_differ_when_they_are_not_equal(left: Any, right: Any) -> None:
    assert (find_differences(left, right, superset=False) == []) == equal(left, right)
    assert find_differences(left, left, superset=False) == []


@given(st.dictionaries(st.text("ab"), VALUES), st.dictionaries(st.text("cd"), VALUES))
def test_a_superset_may_have_more_fields_and_no_fewer(held: Any, more: Any) -> None:
    assert find_differences(held, {**more, **held}, superset=True) == []
    assert find_differences({**held, "e": 1}, {**more, **held}, superset=True) != []


@given(st.lists(VALUES, max_size=4), st.lists(VALUES, max_size=4))
def test_a_superset_may_have_more_items_at_its_end(held: Any, more: Any) -> None:
    assert find_differences(held, held + more, superset=True) == []
    assert find_differences([*held, 1], held, superset=True) != []


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (b"1", b"1.0", True),
        (b"100", b"1e2", True),
        (b"12345678901234567890", b"12345678901234567891", False),
        (b"0.1", b"0.10", True),
        (b"1", b"true", False),
        (b"0", b"null", False),
        (b'"1"', b"1", False),
        (b"[]", b"{}", False),
    ],
)
def test_numbers_are_compared_by_value(left: bytes, right: bytes, same: bool) -> None:
    found = find_differences(parse_json(left), parse_json(right), superset=False)
    assert (found == []) == same


@pytest.mark.parametrize("value", [12345678901234567890 / 3, 2.0**70, 1e300, -(2.0**53) * 3.0])
def test_a_float_is_what_its_json_says(value: float) -> None:
    text = dump_json(value)
    assert find_differences(parse_json(text), value, superset=False) == []
    assert find_differences(value, parse_json(text), superset=True) == []
    assert find_differences(parse_json(b"-" + text.lstrip(b"-")), abs(value), superset=False) != []


def test_places_are_dotted_and_in_order() -> None:
    expected = {"b": [1, {"c": 2}], "a": 1, "only": True}
    received = {"b": [1, {"c": 3}, 4], "a": "1", "more": None}
    assert [tuple(one) for one in find_differences(expected, received, superset=False)] == [
        ("a", "1", '"1"'),
        ("b.1.c", "2", "3"),
        ("b.2", "nothing", "4"),
        ("more", "nothing", "null"),
        ("only", "true", "nothing"),
    ]


def test_documents_may_be_nested_deeper_than_the_stack() -> None:
    def nested(value: Any) -> Any:
        for _ in range(5_000):
            value = [value]
        return value

    assert find_differences(nested(1), nested(1), superset=True) == []
    [one] = find_differences(nested(1), nested(2), superset=True)
    assert (one.expected, one.received) == ("1", "2")


def test_not_more_differences_are_shown_than_one_reads() -> None:
    found = find_differences(list(range(100)), list(range(100, 200)), superset=False)
    lines = [line.text for line in format_differences(found)]
    assert len(found) == 100 and len(lines) == 61
    assert lines[-1] == "  … and 80 more differences"


def test_long_texts_are_cut() -> None:
    [expected, received] = format_text_difference("a" * 5_000, "b" * 5_000)
    assert expected.text.endswith("aaa… (5,000 characters)") and len(received.text) < 2_100
    many = "".join(f"{n}\n" for n in range(500))
    lines = format_text_difference(many, "")
    assert len(lines) == 101 and lines[-1].text.startswith("  … and ")


def test_white_space_is_made_visible_where_nothing_else_differs() -> None:
    assert [line.text for line in format_text_difference("a\n", "a \t")] == [
        '  expected: "a\\n"',
        '  received: "a \\t"',
    ]
