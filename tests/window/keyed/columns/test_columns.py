"""The columns of sessions: what is near what, what numbers are taken, how they are written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.core.errors import StreamerError
from streamer.window.keyed.columns.merge_sessions import MAX_TIME_DISTANCE_NS, group_sessions
from streamer.window.keyed.columns.numbers import NumberColumn, read_numbers
from streamer.window.keyed.columns.open_sessions import (
    OpenSessions,
    concat_sessions,
    decode_sessions,
    encode_sessions,
)

TIMES = st.integers(-20, 20) | st.sampled_from(
    [-MAX_TIME_DISTANCE_NS + 1, MAX_TIME_DISTANCE_NS - 40]
).flatmap(lambda far: st.integers(far, far + 30))
ENTRIES = st.lists(st.tuples(st.integers(0, 3), TIMES, st.integers(0, 9)), min_size=1, max_size=12)


@given(entries=ENTRIES, gap=st.integers(1, 6), spread=st.sampled_from([1, 10**12]))
def test_what_is_near_is_one_session(
    entries: list[tuple[int, int, int]], gap: int, spread: int
) -> None:
    codes, starts, lengths = (np.array(column, np.int64) for column in zip(*entries, strict=True))
    codes, ends = codes * spread, starts + lengths
    found = group_sessions(codes, starts, ends, np.arange(len(codes)), gap)
    got = {
        frozenset(some.tolist()) for some in np.split(found.order, found.bounds[1:]) if len(some)
    }
    # Joined one after another, as long as any two are near.
    want = [{place} for place in range(len(entries))]
    for one in range(len(entries)):
        for other in range(one):
            apart = max(starts[one], starts[other]) - min(ends[one], ends[other])
            if codes[one] == codes[other] and apart <= gap:
                mine = next(some for some in want if one in some)
                theirs = next(some for some in want if other in some)
                if mine is not theirs:
                    mine |= theirs
                    want.remove(theirs)
    assert got == set(map(frozenset, want))


@pytest.mark.parametrize("odd", [2**31 + 1, -(2**31) - 1, 2**80, "1", None, True, math.nan, -0.0])
@pytest.mark.parametrize("others", [(1, 2), (1.5, 2.5), (1, 2.5), ()])
def test_numbers_that_a_column_might_not_hold_are_told(odd: Any, others: tuple[Any, ...]) -> None:
    found, places = read_numbers([*others, odd, *others])
    assert places.tolist() == [len(others)]
    kept = np.delete(found.values, len(others)).tolist()
    assert kept == [float(n) for n in (*others, *others)]
    whole = np.delete(found.whole, len(others)).tolist()
    assert whole == [type(n) is int for n in (*others, *others)]


def _some(count: int, name: str) -> OpenSessions:
    column = np.arange(count, dtype=np.int64) - 2
    numbers = NumberColumn(column / 2, column % 2 == 0)
    return OpenSessions(
        [b'"%s %d"' % (name.encode(), n) for n in range(count)],
        column * 10**9,
        column * 10**9 + 5,
        column + 100,
        column + 3,
        column * 7,
        [b'{"\n": %d}' % n for n in range(count)],
        [b"unused", name.encode(), b"both"],
        1 + column % 2,
        [numbers, numbers],
    )


def _shown(opened: OpenSessions) -> Any:
    columns = (opened.starts, opened.ends, opened.firsts, opened.counts, opened.active)
    metas = [opened.metas[place] for place in opened.meta_ids.tolist()]
    numbers = [(column.values.tolist(), column.whole.tolist()) for column in opened.numbers]
    return opened.keys, [c.tolist() for c in columns], opened.payloads, metas, numbers


@pytest.mark.parametrize("count", [1, 7, 300])
def test_sessions_are_read_as_they_were_written(count: int) -> None:
    opened = _some(count, "a")
    again = decode_sessions(encode_sessions(opened))
    assert _shown(again) == _shown(opened)
    assert b"unused" not in again.metas


def test_sessions_that_are_brought_together_keep_their_metadata() -> None:
    together = concat_sessions([OpenSessions.empty(2), _some(3, "a"), _some(2, "b")])
    one, other = _shown(_some(3, "a")), _shown(_some(2, "b"))
    assert _shown(together)[0] == one[0] + other[0]
    assert _shown(together)[3] == one[3] + other[3]


def test_damaged_sessions_and_those_of_a_later_version_are_refused() -> None:
    body = encode_sessions(_some(5, "a"))
    with pytest.raises(StreamerError, match="block of 5 sessions is damaged"):
        decode_sessions(body[:-1] + bytes([body[-1] ^ 1]))
    with pytest.raises(StreamerError, match="sessions has format 2, which a newer streamer wrote"):
        decode_sessions(b"\2" + body[1:])
