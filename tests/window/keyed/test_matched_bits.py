"""What has found a match is remembered from one micro-batch to the next, and then forgotten."""

import random

import numpy as np
import pytest

from streamer.core.errors import StreamerError
from streamer.window import DictStore
from streamer.window.keyed.matched_bits import MatchedBits
from streamer.window.state.layout import MATCHED_BITS_SEQ


def test_it_remembers_what_a_set_would() -> None:
    chance, store = random.Random(5), DictStore()
    known: set[int] = set()
    first, last = 130_000, 135_000  # two blocks
    for _ in range(30):
        matched = MatchedBits(store)
        for _ in range(3):
            some = chance.sample(range(first, last), 300)
            matched.add(np.array(some))
            known |= set(some)
            gone = chance.sample(range(first, last), 200)
            assert matched.pop(np.array(gone)).tolist() == [one in known for one in gone]
            known -= set(gone)
        matched.write()
    matched = MatchedBits(store)
    assert int(matched.pop(np.arange(first, last)).sum()) == len(known) > 1_000
    matched.write()
    assert store.values == {}


def test_only_blocks_that_change_are_written() -> None:
    store = DictStore()
    matched = MatchedBits(store)
    matched.add(np.array([1, 1_000_000]))
    matched.write()
    before, calls = dict(store.values), store.calls
    matched = MatchedBits(store)
    matched.add(np.array([1_000_001]))
    assert not matched.pop(np.array([2])).any()
    matched.write()
    assert store.calls - calls == 3, "two blocks are read, and one is written"
    changed = {place for place in store.values if store.values[place] != before.get(place)}
    assert changed == {(1_000_000 >> 17, MATCHED_BITS_SEQ)}


def test_a_list_of_another_format_is_refused() -> None:
    store = DictStore()
    store.put(0, MATCHED_BITS_SEQ, bytes([3]))
    with pytest.raises(StreamerError, match="what a join has matched has format 3, which a newer"):
        MatchedBits(store).add(np.array([1]))
