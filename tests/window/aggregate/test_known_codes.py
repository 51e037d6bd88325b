from __future__ import annotations

import random

import numpy as np
import pytest

from streamer.window.aggregate.known_codes import KnownCodes
from streamer.window.pack.message_columns import SLOT_BITS


@pytest.mark.parametrize("groups", [3, 5_000, 1 << 23])
def test_first_places_are_those_of_a_set(groups: int) -> None:
    rng, known, seen = random.Random(groups), KnownCodes(), set[int]()
    for turn in range(8):
        codes = [
            (rng.randrange(1, 2 + turn * 3) << SLOT_BITS) + rng.randrange(1 + groups * turn // 8)
            for _ in range(500)
        ]
        expected = []
        for place, code in enumerate(codes):
            if code not in seen:
                expected.append(place)
                seen.add(code)
        assert known.find_new(np.array(codes, np.int64)) == expected
