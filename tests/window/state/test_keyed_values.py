"""Values of keys are kept, expire, move and are given back."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core.errors import MessageError, StreamerError
from streamer.core.keyed_state import MISSING
from streamer.core.timestamps import Timestamp
from streamer.core.value import Number
from streamer.window import DictStore
from streamer.window.state.keyed_values import KeyedValues, rescale_keyed_values
from streamer.window.state.layout import KEYED_VALUES_HEAD_KEY
from tests.examples import examples

TTL = 10
KEYS = st.sampled_from([b'"a"', b'"b"', b"1", b"null", b"", None])
STEPS = st.lists(
    st.tuples(
        KEYS,
        st.sampled_from(["x", "y"]),
        st.sampled_from(["", "part"]),
        st.one_of(st.integers(), st.sampled_from(["get", "remove"])),
        st.integers(0, 5),
        st.sampled_from([None, 3, 100]),
        st.booleans(),
    ),
    max_size=40,
)


@settings(max_examples=examples(40, 400), deadline=None)
@given(steps=STEPS)
def test_values_are_those_that_were_kept(steps) -> None:
    """However micro-batches are cut."""
    store = DictStore()
    values = KeyedValues(store, TTL)
    known: dict[Any, tuple[int, int]] = {}
    clock = 0
    for key, name, part, what, later, keep, commits in steps:
        clock += later
        if commits:
            values.commit()
            values = KeyedValues(store, TTL)
        values.begin(key, clock)
        place = key or b"", name, part
        expires, value = known.get(place, (0, 0))
        assert values.get(name, part) == (value if expires > clock else MISSING)
        if what == "remove":
            values.put(name, MISSING, part)
            known.pop(place, None)
        elif what != "get":
            values.put(name, what, part, keep)
            known[place] = clock + (TTL if keep is None else keep), what
    values.commit()
    values = KeyedValues(store, TTL)
    values.begin(b'"other"', clock + 1000)
    values.put("x", 1)
    values.commit()
    assert KeyedValues(store, TTL).key_count == 1


@pytest.mark.parametrize(
    "value", [None, True, 1, 1.5, "text", b"\xff", [1, {"a": None}], Number("1.50"), 2**63 - 1]
)
def test_a_value_comes_back_as_it_was(value) -> None:
    store = DictStore()
    values = KeyedValues(store, None)
    values.begin(b"1", 0)
    values.put("x", value)
    values.put("t", Timestamp(5, 0))
    values.commit()
    values = KeyedValues(store, None)
    values.begin(b"1", 2**62)
    found = values.get("x")
    assert (type(found), found) == (type(value), value)
    assert values.get("t") == Timestamp(5, 0)


def test_many_keys_are_spread_over_buckets_of_which_few_are_written() -> None:
    store = DictStore()
    values = KeyedValues(store, None)
    for number in range(20_000):
        values.begin(b"%d" % number, 0)
        values.put("n", number)
    values.commit()
    assert values.key_count == 20_000
    assert 19 <= len(store.values) - 1 <= 20
    store.calls = 0
    values = KeyedValues(store, None)
    values.begin(b"77", 1)
    assert values.get("n") == 77
    values.put("n", 78)
    values.commit()
    # The head and one bucket are read, and written.
    assert store.calls == 4


def test_what_has_expired_is_given_back_a_few_buckets_at_a_time() -> None:
    store = DictStore()
    values = KeyedValues(store, TTL)
    for number in range(20_000):
        values.begin(b"%d" % number, 0)
        values.put("n", number)
    values.commit()
    counts = []
    for turn in range(4):
        values = KeyedValues(store, TTL)
        values.begin(b"new", 100 + turn)
        values.put("n", 1)
        values.commit()
        counts.append(values.key_count)
    assert counts == sorted(counts, reverse=True) and counts[-1] == 1
    assert counts[0] > 8_000
    assert len(store.values) == 2


@pytest.mark.parametrize("before", [1, 3])
@pytest.mark.parametrize("after", [1, 2])
def test_values_go_with_their_keys_to_other_shards(before, after) -> None:
    chance = random.Random(5)
    stores = [DictStore() for _ in range(before)]
    shards = [KeyedValues(store, TTL) for store in stores]
    for number in range(5_000):
        values = shards[number % before]
        values.begin(b"%d" % number, number % 50)
        values.put(chance.choice("abcd"), number)
        values.put("part", number, "p", 1000)
    for values in shards:
        values.commit()
    into = [DictStore() for _ in range(after)]
    rescale_keyed_values(lambda key: int(key) % after, stores, into)
    moved = [KeyedValues(store, TTL) for store in into]
    for number in range(5_000):
        values = moved[number % after]
        values.begin(b"%d" % number, None)
        assert values.clock == 49
        alive = number % 50 + TTL > 49
        found = [values.get(name) for name in "abcd"]
        assert sorted(one for one in found if one is not MISSING) == [number] * alive
        assert values.get("part", "p") == number
    # Keys that had expired stay behind.
    assert sum(values.key_count for values in moved) == 5_000 + 5_000 * TTL // 50


def test_a_batch_without_a_key_keeps_nothing() -> None:
    values = KeyedValues(DictStore(), None)
    values.suspend()
    with pytest.raises(MessageError, match="has no key"):
        values.get("x")
    with pytest.raises(MessageError, match="has no key"):
        values.put("x", 1)


def test_a_later_format_is_refused() -> None:
    store = DictStore()
    store.put(*KEYED_VALUES_HEAD_KEY, b'{"version":99}')
    with pytest.raises(StreamerError, match="newer streamer"):
        KeyedValues(store, None)


def test_a_store_without_values_stays_empty() -> None:
    store = DictStore()
    values = KeyedValues(store, TTL)
    values.begin(b"1", 5)
    assert values.get("x") is MISSING
    values.commit()
    assert not store.values
