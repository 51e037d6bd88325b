"""Positions in topics: as JSON, limited, and cut into pieces."""

from hypothesis import given
from hypothesis import strategies as st

from streamer.connectors.kafka.input.positions import (
    KafkaPiece,
    KafkaPosition,
    limit_ends,
    list_kafka_ends,
    split_ranges,
)

places = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 3))
standing = st.dictionaries(places, st.tuples(st.integers(0, 500), st.integers(-50, 5000)))


def test_a_position_goes_through_json():
    position = KafkaPosition({("a", 0): 7, ("a", 1): -2}, {("b", 0): 3}, {("a", 0): 9})
    assert KafkaPosition.from_offset(position.to_offset()) == position
    assert KafkaPosition({}).to_offset() == {"kafka:at": {}}


def test_ends_are_found_in_the_position_of_several_inputs_in_their_order():
    one, two = KafkaPosition({("z", 0): 7}), KafkaPosition({("a", 1): 3, ("a", 2): -2})
    data = {"second": {"path": 3}, "kafka": {"kafka": two.to_offset()}, "1": one.to_offset()}
    assert list_kafka_ends(data) == [{"a": {"1": 3}}, {"z": {"0": 7}}]
    assert list_kafka_ends(one.to_offset()) == [{"z": {"0": 7}}]
    assert list_kafka_ends({}) == [] and list_kafka_ends("of another kind") == []


@given(standing, st.integers(1, 3000))
def test_a_micro_batch_takes_of_each_partition_what_its_part_is(state, messages):
    stands = {place: at for place, (at, _) in state.items()}
    ends = {place: at + waiting for place, (at, waiting) in state.items()}
    until = limit_ends(stands, ends, messages)
    taken = {place: until[place] - stands[place] for place in ends}
    waiting = {place: ends[place] - stands[place] for place in ends}
    assert all(taken[one] == waiting[one] for one in ends if waiting[one] <= 0)
    assert all(1 <= taken[one] <= waiting[one] for one in ends if waiting[one] > 0)
    total = sum(count for count in taken.values() if count > 0)
    assert total <= messages + len(ends)
    if sum(count for count in waiting.values() if count > 0) <= messages:
        assert until == ends


@given(standing, st.integers(0, 5), st.integers(0, 5))
def test_pieces_have_each_offset_once_in_order(state, parts, least):
    begin = KafkaPosition({place: at for place, (at, _) in state.items()})
    end = KafkaPosition({place: at + more for place, (at, more) in state.items()})
    pieces = split_ranges(begin, end, parts, least)
    assert all(one.begin < one.end for one in pieces)
    for place, (at, more) in state.items():
        ours = [one for one in pieces if (one.topic, one.partition) == place]
        edges = [offset for one in ours for offset in (one.begin, one.end)]
        assert edges == sorted(edges) and edges[1:-1:2] == edges[2:-1:2]
        assert (edges[:1], edges[-1:]) == (([at], [at + more]) if more > 0 else ([], []))


def test_a_large_partition_is_cut_for_several_tasks_and_a_small_one_is_not():
    begin, end = KafkaPosition({("a", 0): 10}), KafkaPosition({("a", 0): 100_010})
    edges = [(one.begin, one.end) for one in split_ranges(begin, end, 2)]
    assert edges == [(10, 50_010), (50_010, 100_010)]
    assert len(split_ranges(begin, end, 0)) == 1
    assert len(split_ranges(begin, KafkaPosition({("a", 0): 30_000}), 2)) == 1
    assert len(split_ranges(begin, KafkaPosition({("a", 0): 40}), 0, 3)) == 3


def test_a_partition_that_came_is_read_from_where_it_was_found_to_begin():
    end = KafkaPosition({("a", 0): 9, ("a", 1): 5, ("a", 2): 2}, {("a", 1): 3}, {("a", 1): 8})
    pieces = split_ranges(KafkaPosition({("a", 0): 9, ("a", 1): -2, ("b", 0): 4}), end, 0)
    assert pieces == [KafkaPiece("a", 1, 3, 5, 8), KafkaPiece("a", 2, 0, 2, 0)]
