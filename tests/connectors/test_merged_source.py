"""Several sources as one: offsets, shares and partitions of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamer.connectors.merged_source import ChildPiece, MergedSource, source_path_of
from streamer.core.execution import Execution
from streamer.sdk.input.replayable import (
    Chunk,
    FileExtent,
    LatestOffset,
    Limit,
    Offset,
    RawMessages,
    extent_of,
)
from tests.components.inputs.rooms import lodging


@dataclass
class Numbers:
    """A source of the numbers below `count`; it has `grown` of them so far."""

    count: int
    grown: int | None = None
    heard: list[Any] = field(default_factory=list)

    def initial_offset(self) -> Offset:
        return {"n": 0}

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        there = self.count if self.grown is None else self.grown
        end = min(start["n"] + limit.messages, there)
        return LatestOffset({"n": end}, end - start["n"], end == self.count, end < there)

    def split(self, start: Offset, end: Offset, parts: int) -> list[range]:
        return [range(start["n"], end["n"])] if end != start else []

    def read(self, piece: range, ex: Execution) -> Iterator[Chunk]:
        yield RawMessages([b"%d" % n for n in piece], {})

    def partition_of(self, piece: range) -> str:
        return ""

    def on_committed(self, end: Offset) -> None:
        self.heard.append(end)

    def on_finished(self) -> None:
        self.heard.append("finished")


EX = Execution(lambda: 0)


def taken(
    source: MergedSource, limit: int, start: Offset | None = None
) -> tuple[dict[str, int], LatestOffset]:
    latest = source.latest_offset(start or source.initial_offset(), 0, Limit(limit))
    return {name: offset["n"] for name, offset in latest.offset.items()}, latest


def read(source: MergedSource, start: Offset, end: Offset) -> list[tuple[str, list[bytes]]]:
    return [
        (
            source.partition_of(piece),
            [raw for chunk in source.read(piece, EX) for raw in chunk.raws],
        )
        for piece in source.split(start, end, 2)
    ]


def test_each_takes_an_equal_share_while_all_have_enough() -> None:
    found, latest = taken(MergedSource({"a": Numbers(100), "b": Numbers(100)}), 10)
    assert found == {"a": 5, "b": 5}
    assert (latest.waiting, latest.is_ended, latest.has_more) == (10, False, True)


def test_what_one_does_not_need_goes_to_the_others() -> None:
    sources = {"a": Numbers(100), "b": Numbers(2), "c": Numbers(100)}
    found, latest = taken(MergedSource(sources), 30)
    assert found == {"a": 14, "b": 2, "c": 14}
    assert latest.waiting == 30


def test_a_limit_below_the_number_of_sources_still_lets_each_go_on() -> None:
    found, _ = taken(MergedSource({"a": Numbers(9), "b": Numbers(9)}), 1)
    assert found == {"a": 1, "b": 1}


def test_it_ends_when_all_have_ended() -> None:
    source = MergedSource({"a": Numbers(3), "b": Numbers(9, grown=5)})
    found, latest = taken(source, 100)
    assert (found, latest.is_ended, latest.has_more) == ({"a": 3, "b": 5}, False, False)
    source.sources["b"].grown = None
    found, latest = taken(source, 100, latest.offset)
    assert (found, latest.is_ended) == ({"a": 3, "b": 9}, True)


def test_a_source_goes_on_from_its_own_offset_whatever_its_place() -> None:
    before = MergedSource({"a": Numbers(9), "b": Numbers(9)})
    _, latest = taken(before, 4)
    after = MergedSource({"b": Numbers(9), "new": Numbers(2), "a": Numbers(9)})
    _, end = taken(after, 100, latest.offset)
    assert read(after, latest.offset, end.offset) == [
        ("b:", [b"2", b"3", b"4", b"5", b"6", b"7", b"8"]),
        ("new:", [b"0", b"1"]),
        ("a:", [b"2", b"3", b"4", b"5", b"6", b"7", b"8"]),
    ]


def test_an_offset_of_a_source_that_is_gone_is_left_out() -> None:
    source = MergedSource({"a": Numbers(1)})
    found, latest = taken(source, 9, {"a": {"n": 0}, "gone": {"n": 7}})
    assert found == {"a": 1}
    source.on_committed({**latest.offset, "gone": {"n": 7}})
    assert source.sources["a"].heard == [{"n": 1}]


def test_partitions_of_sources_inside_of_sources_do_not_collide() -> None:
    inner = {"a": MergedSource({"b": Numbers(1)}), "b": Numbers(1), "a:b": Numbers(1)}
    source = MergedSource(inner)
    pieces = source.split(source.initial_offset(), taken_offset(source), 1)
    assert [source_path_of(piece) for piece in pieces] == [(0, 0), (1,), (2,)]
    assert len({source.partition_of(piece) for piece in pieces[:2]}) == 2
    assert source_path_of(range(3)) == ()


def taken_offset(source: MergedSource) -> Offset:
    return source.latest_offset(source.initial_offset(), 0, Limit()).offset


def test_all_hear_what_is_safe_and_that_it_is_over() -> None:
    a, b = Numbers(3), Numbers(4)
    source = MergedSource({"a": a, "b": b})
    source.on_committed({"a": {"n": 2}, "b": {"n": 4}})
    source.on_finished()
    assert (a.heard, b.heard) == ([{"n": 2}, "finished"], [{"n": 4}, "finished"])


def test_it_can_be_opened_child_by_child(tmp_path) -> None:
    class Opened(Numbers):
        def open(self, room) -> Numbers:
            return Numbers(self.count * (10 if room.name == "/a" else 100))

    source = MergedSource({"a": Opened(1), "b": Opened(2), "c": Numbers(3)})
    with lodging(tmp_path) as lodged:
        opened = source.open(lodged.room)
    assert [child.count for child in opened.sources.values()] == [10, 200, 3]


@pytest.mark.parametrize("number", [0, 1])
def test_a_piece_is_read_by_its_own_source(number: int) -> None:
    source = MergedSource({"a": Numbers(1), "b": Numbers(2)})
    (chunk,) = source.read(ChildPiece(number, range(number, number + 1)), EX)
    assert chunk == RawMessages([b"%d" % number], {})


class Sized(Numbers):
    """Numbers that are ten bytes each."""

    def extent_between(self, start: Offset, end: Offset) -> FileExtent:
        return FileExtent("f", start["n"] * 10, (end["n"] - start["n"]) * 10, self.count * 10)


def test_the_share_of_several_files_is_known_when_that_of_each_is() -> None:
    start, end = {"a": {"n": 5}}, {"a": {"n": 10}, "b": {"n": 30}}
    several = MergedSource({"a": Sized(100), "b": Sized(50)})
    assert extent_of(several, start, end) == ("2 inputs", 50, 350, 1_500)
    assert extent_of(several, end, end) == ("2 inputs", 400, 0, 1_500)
    assert extent_of(MergedSource({"a": Sized(100)}), start, end) == ("f", 50, 50, 1_000)
    assert extent_of(MergedSource({"a": Sized(100), "b": Numbers(50)}), start, end) is None
