"""New positions of partitions: what they mean, and which are refused."""

from __future__ import annotations

import pytest

from streamer.connectors.kafka.cluster.topic_selection import EARLIEST
from streamer.connectors.kafka.input.offset_moves import (
    PartitionState,
    check_selectors,
    copy_offsets,
    plan_moves,
    select_places,
    shift_offsets,
)
from streamer.core.errors import StreamerError

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)
STATES = {
    A0: PartitionState(position=40, first=10, last=100),
    A1: PartitionState(position=EARLIEST, first=5, last=5),
    B0: PartitionState(position=2, first=7, last=9),
}


def test_a_position_is_an_offset_and_the_lag_counts_what_is_there() -> None:
    assert [(one.offset, one.lag) for one in STATES.values()] == [(40, 60), (5, 0), (2, 2)]


def test_moves_say_what_is_read_again_and_what_is_skipped() -> None:
    moves = plan_moves(STATES, {A0: 10, A1: 5, B0: 9})
    assert [(one.place, one.before, one.after, one.effect) for one in moves] == [
        (A0, 40, 10, "30 again"),
        (A1, 5, 5, "unchanged"),
        (B0, 2, 9, "7 skipped"),
    ]


def test_offsets_that_are_not_there_are_all_named() -> None:
    with pytest.raises(StreamerError) as raised:
        plan_moves(STATES, {A0: 9, A1: 5, B0: 10})
    assert str(raised.value) == (
        "a:0 has the offsets 10 to 100, not 9; b:0 has the offsets 7 to 9, not 10; "
        "choose an offset within"
    )


def test_a_shift_stays_within_what_there_is() -> None:
    assert shift_offsets(STATES, STATES, 50) == {A0: 90, A1: 5, B0: 9}
    assert shift_offsets(STATES, STATES, -50) == {A0: 10, A1: 5, B0: 7}


def test_what_another_reader_has_not_read_stays() -> None:
    places = list(STATES)
    source = {A0: EARLIEST, B0: 8, ("c", 0): 3}
    assert copy_offsets(STATES, places, source, "the group 'g'") == {A0: 10, B0: 8}
    with pytest.raises(StreamerError, match="the group 'g' has no position of these"):
        copy_offsets(STATES, places, {("c", 0): 3}, "the group 'g'")


@pytest.mark.parametrize(
    ("chosen", "places"),
    [
        ((), [A0, A1, B0]),
        (("a",), [A0, A1]),
        (("a:1", "b"), [A1, B0]),
        (("a:0,1", "a"), [A0, A1]),
    ],
)
def test_topics_and_partitions_are_chosen(chosen: tuple[str, ...], places: list[object]) -> None:
    assert select_places(STATES, chosen) == places


@pytest.mark.parametrize("chosen", ["c", "a:2", "a:0,7"])
def test_what_the_stream_does_not_read_is_refused(chosen: str) -> None:
    with pytest.raises(
        StreamerError, match=f"--topic {chosen}: the stream does not read it; .*a, b"
    ):
        check_selectors(STATES, [chosen])


def test_an_input_has_those_of_the_topics_that_it_reads() -> None:
    assert select_places(STATES, ["c", "a:1,7"]) == [A1]
    assert select_places(STATES, ["c"]) == []
    check_selectors(STATES, ["a:0", "b"])


@pytest.mark.parametrize("chosen", ["a:", "a:x", "a:0,"])
def test_what_is_no_partition_is_refused(chosen: str) -> None:
    with pytest.raises(StreamerError, match="expected TOPIC, or TOPIC:0,3"):
        check_selectors(STATES, [chosen])
