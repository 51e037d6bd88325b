"""Several sources as one: offsets, shares and partitions of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamer.message import Execution
from streamer.source.replayable import Chunk, Extent, Latest, Limit, Offset, Raws, extent_of
from streamer.source.several import ChildPiece, Several, way_of
from tests.inputs.rooms import lodging


@dataclass
class Numbers:
    """A source of the numbers below `count`; it has `grown` of them so far."""

    count: int
    grown: int | None = None
    heard: list[Any] = field(default_factory=list)

    def initial(self) -> Offset:
        return {"n": 0}

    def latest(self, start: Offset, now: int, limit: Limit) -> Latest:
        there = self.count if self.grown is None else self.grown
        end = min(start["n"] + limit.messages, there)
        return Latest({"n": end}, end - start["n"], end == self.count, end < there)

    def split(self, start: Offset, end: Offset, parts: int) -> list[range]:
        return [range(start["n"], end["n"])] if end != start else []

    def read(self, piece: range, ex: Execution) -> Iterator[Chunk]:
        yield Raws([b"%d" % n for n in piece], {})

    def partition(self, piece: range) -> str:
        return ""

    def committed(self, end: Offset) -> None:
        self.heard.append(end)

    def finished(self) -> None:
        self.heard.append("finished")


EX = Execution(lambda: 0)


def taken(
    source: Several, limit: int, start: Offset | None = None
) -> tuple[dict[str, int], Latest]:
    latest = source.latest(start or source.initial(), 0, Limit(limit))
    return {name: offset["n"] for name, offset in latest.offset.items()}, latest


def read(source: Several, start: Offset, end: Offset) -> list[tuple[str, list[bytes]]]:
    return [
        (source.partition(piece), [raw for chunk in source.read(piece, EX) for raw in chunk.raws])
        for piece in source.split(start, end, 2)
    ]


def test_each_takes_an_equal_share_while_all_have_enough() -> None:
    found, latest = taken(Several({"a": Numbers(100), "b": Numbers(100)}), 10)
    assert found == {"a": 5, "b": 5}
    assert (latest.waiting, latest.ended, latest.more) == (10, False, True)


def test_what_one_does_not_need_goes_to_the_others() -> None:
    sources = {"a": Numbers(100), "b": Numbers(2), "c": Numbers(100)}
    found, latest = taken(Several(sources), 30)
    assert found == {"a": 14, "b": 2, "c": 14}
    assert latest.waiting == 30


def test_a_limit_below_the_number_of_sources_still_lets_each_go_on() -> None:
    found, _ = taken(Several({"a": Numbers(9), "b": Numbers(9)}), 1)
    assert found == {"a": 1, "b": 1}


def test_it_ends_when_all_have_ended() -> None:
    source = Several({"a": Numbers(3), "b": Numbers(9, grown=5)})
    found, latest = taken(source, 100)
    assert (found, latest.ended, latest.more) == ({"a": 3, "b": 5}, False, False)
    source.sources["b"].grown = None
    found, latest = taken(source, 100, latest.offset)
    assert (found, latest.ended) == ({"a": 3, "b": 9}, True)


def test_a_source_goes_on_from_its_own_offset_whatever_its_place() -> None:
    before = Several({"a": Numbers(9), "b": Numbers(9)})
    _, latest = taken(before, 4)
    after = Several({"b": Numbers(9), "new": Numbers(2), "a": Numbers(9)})
    _, end = taken(after, 100, latest.offset)
    assert read(after, latest.offset, end.offset) == [
        ("b:", [b"2", b"3", b"4", b"5", b"6", b"7", b"8"]),
        ("new:", [b"0", b"1"]),
        ("a:", [b"2", b"3", b"4", b"5", b"6", b"7", b"8"]),
    ]


def test_an_offset_of_a_source_that_is_gone_is_left_out() -> None:
    source = Several({"a": Numbers(1)})
    found, latest = taken(source, 9, {"a": {"n": 0}, "gone": {"n": 7}})
    assert found == {"a": 1}
    source.committed({**latest.offset, "gone": {"n": 7}})
    assert source.sources["a"].heard == [{"n": 1}]


def test_partitions_of_sources_inside_of_sources_do_not_collide() -> None:
    inner = {"a": Several({"b": Numbers(1)}), "b": Numbers(1), "a:b": Numbers(1)}
    source = Several(inner)
    pieces = source.split(source.initial(), taken_offset(source), 1)
    assert [way_of(piece) for piece in pieces] == [(0, 0), (1,), (2,)]
    assert len({source.partition(piece) for piece in pieces[:2]}) == 2
    assert way_of(range(3)) == ()


def taken_offset(source: Several) -> Offset:
    return source.latest(source.initial(), 0, Limit()).offset


def test_all_hear_what_is_safe_and_that_it_is_over() -> None:
    a, b = Numbers(3), Numbers(4)
    source = Several({"a": a, "b": b})
    source.committed({"a": {"n": 2}, "b": {"n": 4}})
    source.finished()
    assert (a.heard, b.heard) == ([{"n": 2}, "finished"], [{"n": 4}, "finished"])


def test_it_can_be_opened_child_by_child(tmp_path) -> None:
    class Opened(Numbers):
        def opened(self, room) -> Numbers:
            return Numbers(self.count * (10 if room.name == "/a" else 100))

    source = Several({"a": Opened(1), "b": Opened(2), "c": Numbers(3)})
    with lodging(tmp_path) as lodged:
        opened = source.opened(lodged.room)
    assert [child.count for child in opened.sources.values()] == [10, 200, 3]


@pytest.mark.parametrize("number", [0, 1])
def test_a_piece_is_read_by_its_own_source(number: int) -> None:
    source = Several({"a": Numbers(1), "b": Numbers(2)})
    (chunk,) = source.read(ChildPiece(number, range(number, number + 1)), EX)
    assert chunk == Raws([b"%d" % number], {})


class Sized(Numbers):
    """Numbers that are ten bytes each."""

    def extent(self, start: Offset, end: Offset) -> Extent:
        return Extent("f", start["n"] * 10, (end["n"] - start["n"]) * 10, self.count * 10)


def test_the_share_of_several_files_is_known_when_that_of_each_is() -> None:
    start, end = {"a": {"n": 5}}, {"a": {"n": 10}, "b": {"n": 30}}
    several = Several({"a": Sized(100), "b": Sized(50)})
    assert extent_of(several, start, end) == ("2 inputs", 50, 350, 1_500)
    assert extent_of(several, end, end) == ("2 inputs", 400, 0, 1_500)
    assert extent_of(Several({"a": Sized(100)}), start, end) == ("f", 50, 50, 1_000)
    assert extent_of(Several({"a": Sized(100), "b": Numbers(50)}), start, end) is None
