"""Which ranges of a task are requested together, and what becomes of what was not answered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.connectors.kafka.input.fetch_ahead import FetchAhead
from streamer.connectors.kafka.input.fetch_requests import BrokerAnswer
from streamer.connectors.kafka.input.partition_fetcher import FetchSettings, PartitionRange


class Fetcher:
    """Answers at once; a byte is an offset."""

    settings = FetchSettings()

    def __init__(self, fails: bool = False) -> None:
        self.groups: list[list[PartitionRange]] = []
        self.fails = fails
        self.held = 0

    def estimate_size(self, target: PartitionRange) -> int:
        return target.end - target.begin

    def begin_together(self, ranges: list[PartitionRange], size: int) -> Any:
        self.groups.append(list(ranges))
        assert sum(map(self.estimate_size, ranges)) <= size
        assert len({one[:2] for one in ranges}) == len(ranges)
        return self

    def result(self, timeout_s: float) -> Any:
        if self.fails:
            raise TimeoutError
        return {
            one[:2]: BrokerAnswer(0, str(one.begin).encode(), 0, [], False, -1)
            for one in self.groups[-1]
        }


def ranges_of(*sizes: int) -> list[PartitionRange]:
    return [PartitionRange("t", number, 7, 7 + size) for number, size in enumerate(sizes)]


def test_small_ranges_come_in_groups_and_the_next_is_under_way() -> None:
    fetcher: Any = Fetcher()
    ranges = ranges_of(*[10] * 25)
    ahead = FetchAhead(ranges, size=100)
    assert ahead.take(fetcher, ranges[0]) is not None
    assert [len(group) for group in fetcher.groups] == [10, 10]
    for one in ranges[1:10]:
        assert ahead.take(fetcher, one) is not None
    assert len(fetcher.groups) == 2, "what is read is not requested again"
    assert ahead.take(fetcher, ranges[10]) is not None
    assert [len(group) for group in fetcher.groups] == [10, 10, 5]


def test_large_ranges_single_ones_and_parts_of_one_partition_are_requested_by_themselves() -> None:
    fetcher: Any = Fetcher()
    ranges = ranges_of(90, 90)
    ahead = FetchAhead(ranges, size=100)
    assert [ahead.take(fetcher, one) for one in ranges] == [None, None]
    (one,) = ranges_of(5)
    assert FetchAhead([one]).take(fetcher, one) is None
    parts = [PartitionRange("t", 0, begin, begin + 5) for begin in (0, 5)]
    ahead = FetchAhead(parts)
    assert [ahead.take(fetcher, one) for one in parts] == [None, None]
    assert fetcher.groups == []
    assert FetchAhead(parts).take(fetcher, one) is None, "it was not announced"


def test_what_no_broker_answers_is_requested_by_itself() -> None:
    fetcher: Any = Fetcher(fails=True)
    ranges = ranges_of(5, 5, 5)
    ahead = FetchAhead(ranges)
    assert [ahead.take(fetcher, one) for one in ranges] == [None] * 3


@given(st.lists(st.integers(1, 60), max_size=40), st.sets(st.integers(0, 39)))
def test_each_range_gets_its_own_answer_whatever_is_left_out(
    sizes: list[int], left_out: set[int]
) -> None:
    fetcher: Any = Fetcher()
    ranges = [
        PartitionRange("t", number % 7, number, number + size) for number, size in enumerate(sizes)
    ]
    ahead = FetchAhead(ranges, size=100)
    for number, one in enumerate(ranges):
        if number not in left_out:
            answer = ahead.take(fetcher, one)
            assert answer is None or answer.records == str(one.begin).encode()
        held = len(ahead._group) + (len(ahead._next[0]) if ahead._next else 0)
        assert held <= 14, "two groups of different partitions"


@pytest.mark.parametrize("error", [0, 6])
def test_an_empty_answer_or_an_error_shows_nothing(error: int) -> None:
    """A broker leaves out what is too much: it is requested again, and nothing is skipped."""
    from streamer.connectors.kafka.input.partition_fetcher import PartitionFetcher
    from streamer.connectors.kafka.input.record_batches import NeededFields
    from tests.connectors.kafka.input.test_record_batches import batch

    asked: list[int] = []
    fetcher = PartitionFetcher(None, FetchSettings())  # type: ignore[arg-type]

    class Pending:
        def result(self, timeout_s: float) -> BrokerAnswer:
            data = batch(*((1, None, b"x", []) for _ in range(3)))
            return BrokerAnswer(0, data, 3, [], False, -1)

    fetcher.begin = lambda target, at: asked.append(at) or Pending()  # type: ignore[method-assign,func-returns-value,assignment]
    first = BrokerAnswer(error, b"", 3, [], False, -1)
    chunks = list(fetcher.read(PartitionRange("t", 0, 0, 3), NeededFields(), first))
    assert asked == [0] and [len(one.values) for one in chunks] == [3]
