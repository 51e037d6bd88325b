"""A shard's state is that of the micro-batch before, or it is not gone on with."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.core.errors import StreamerError
from streamer.spark.tasks.stages import SparkStateStore
from streamer.spark.tasks.state_mark import add_mark, split_mark
from streamer.window.state.layout import HEAD_KEY


class MapState:
    """Spark's map state, as far as a shard uses it."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}

    def getValue(self, key: Any) -> Any:
        return self.values.get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self.values[key] = value


def test_a_head_is_read_as_it_was_written_in_the_micro_batch_before() -> None:
    state = MapState()
    SparkStateStore(state, 6).put(*HEAD_KEY, b'{"a":1}')
    SparkStateStore(state, 6).put(0, 7, b"pack")
    for now in (6, 7):  # Brought to this one, or written in the one before.
        assert SparkStateStore(state, now).get(*HEAD_KEY) == b'{"a":1}'
    assert SparkStateStore(state, 9).get(0, 7) == b"pack" == state.values[0, 7][0]


@pytest.mark.parametrize("now", [5, 8, 100, 1_000_000_000])
def test_the_state_of_another_micro_batch_is_no_state_to_go_on_with(now: int) -> None:
    state = MapState()
    SparkStateStore(state, 6).put(*HEAD_KEY, b'{"a":1}')
    with pytest.raises(StreamerError, match=f"micro-batch 6, and micro-batch {now:,} goes"):
        SparkStateStore(state, now).get(*HEAD_KEY)


@pytest.mark.parametrize("at", range(13))
def test_another_bit_of_a_head_is_found(at: int) -> None:
    value = bytearray(add_mark(b'{"counted":17}', 6))
    value[at] ^= 2
    with pytest.raises(StreamerError, match="not what was written"):
        split_mark(bytes(value))


def test_a_head_of_version_0_1_is_taken_as_it_is() -> None:
    state = MapState()
    state.updateValue(HEAD_KEY, (b'{"a":1}',))
    assert SparkStateStore(state, 9).get(*HEAD_KEY) == b'{"a":1}'
