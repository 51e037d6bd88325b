"""Integers as bytes: what goes in comes out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamer.window.settings.int_codec import pack_times, unpack_times

LEAST, LAST = -(2**63), 2**63 - 1


@given(st.lists(st.integers(LEAST, LAST) | st.sampled_from([LEAST, -1, 0, LAST])))
def test_times_of_any_sign_and_distance_survive(times: list[int]) -> None:
    assert unpack_times(pack_times(np.array(times, np.int64))).tolist() == times


def test_times_that_are_near_each_other_take_a_byte_each() -> None:
    times = np.arange(10**18, 10**18 + 200)
    assert len(pack_times(times)) == 8 + 1 + 200
