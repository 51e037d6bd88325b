"""What the lists of topics mean."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.connectors.kafka.cluster.topic_selection import (
    EARLIEST,
    LATEST,
    TopicSelection,
    parse_topics,
    pattern_problem,
    split_patterns,
)

NAMES = st.from_regex(r"[a-zA-Z0-9._\-]{1,12}", fullmatch=True)


@pytest.mark.parametrize(
    ("items", "topics", "partitions"),
    [
        (["foo"], ("foo",), {}),
        ([" foo, bar ", "baz ", "", ","], ("foo", "bar", "baz"), {}),
        (["foo", "bar:1"], ("foo",), {"bar": {1: -1}}),
        (["foo:5-7", "bar:0-1"], (), {"foo": {5: -1, 6: -1, 7: -1}, "bar": {0: -1, 1: -1}}),
        (["foo:5:7"], (), {"foo": {5: 7}}),
        (["foo:4-6:3", "foo:5:7"], (), {"foo": {4: 3, 5: 7, 6: 3}}),
        (["foo:4-6:3", "foo:5:-1"], (), {"foo": {4: 3, 5: 3, 6: 3}}),
        (["foo:4-6:3", "foo:5"], (), {"foo": {4: 3, 5: 3, 6: 3}}),
        (["foo:1:-9"], (), {"foo": {1: EARLIEST}}),
    ],
)
def test_topics_partitions_ranges_and_offsets_are_read_as_connect_does(items, topics, partitions):
    assert parse_topics(items, -1, True) == (topics, partitions)


@pytest.mark.parametrize(
    ("item", "wrong"),
    [
        ("foo:1:2:3", "expected topic:partition, or topic:partition:offset"),
        ("foo:", "expected a partition such as 3"),
        ("foo:a", "expected a partition such as 3"),
        ("foo:1-2-3", "expected a partition such as 3"),
        ("foo:-1", "expected a partition such as 3"),
        ("foo:3-2", "the range ends before it begins"),
        ("foo:1:x", "expected an offset such as 1000"),
        ("foo:0-99999999999", "there are no such partitions"),
    ],
)
def test_what_is_no_topic_is_named(item, wrong):
    with pytest.raises(ValueError, match=re.escape(f"has {item!r}; {wrong}")):
        parse_topics(["right", item], -1, True)


def test_offsets_are_refused_where_the_input_takes_none():
    with pytest.raises(ValueError, match="takes no offsets, kafka_franz and redpanda do"):
        parse_topics(["foo:1:2"], -1, False)


@given(
    st.lists(st.tuples(NAMES, st.integers(0, 9), st.integers(0, 3), st.none() | st.integers(0, 99)))
)
def test_any_list_is_the_last_offset_that_was_given_for_each_partition(places):
    items, expected = [], {}
    for topic, first, more, offset in places:
        items.append(f"{topic}:{first}-{first + more}" + ("" if offset is None else f":{offset}"))
        for number in range(first, first + more + 1):
            key = (topic, number)
            expected[key] = expected.get(key, LATEST) if offset is None else offset
    joined = parse_topics([", ".join(items)], LATEST, True)
    assert joined == parse_topics(items, LATEST, True)
    found = {(topic, n): at for topic, of in joined[1].items() for n, at in of.items()}
    assert found == expected


def test_internal_topics_are_never_found():
    names = ["__consumer_offsets", "__transaction_state", "__mine", "a"]
    assert TopicSelection(include=(".*",)).select_topics(names) == ["__mine", "a"]


def test_named_topics_are_those_that_there_are():
    assert TopicSelection(topics=("b", "a", "no")).select_topics(["a", "b", "c"]) == ["a", "b"]
    assert TopicSelection(partitions={"b": {1: -2}}).select_topics(["a", "b", "c"]) == ["b"]


def test_a_comma_within_braces_belongs_to_the_expression():
    assert split_patterns(["a, b{1,2}", "c,,a"]) == ("a", "b{1,2}", "c")


@pytest.mark.parametrize("text", ["(", "a(?=b)"])
def test_what_is_no_expression_is_refused(text):
    assert "has " in str(pattern_problem(["fine.*", text]))
    assert pattern_problem(["fine.*", "a{1,2}", "(?P<x>a)", "(?U)a", "[[:alpha:]]"]) is None


def test_one_expression_is_found_anywhere_in_a_name_and_none_of_the_others():
    selection = TopicSelection(
        include=("^FOUND-", "(?i)^found-(one|t[w]o)$", "not"), exclude=("not$",)
    )
    names = ["other", "found-one", "found-not", "found-two"]
    assert selection.select_topics(names) == ["found-one", "found-two"]
