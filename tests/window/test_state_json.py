"""Plain values come back as they were, odd ones too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.window.keyed.state import KeyState, Window
from streamer.window.state_store import dump_state_json, load_state_json


@pytest.mark.parametrize(
    "value",
    [[1, "é", None, {"a": 0.5}], ["\udcff", "é"], [2**70, -(2**63) - 2], -(2**63), 2**64 - 1, ""],
)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    assert load_state_json(dump_state_json(value)) == value
    assert type(load_state_json(dump_state_json([value]))[0]) is type(value)


def test_odd_values_that_nothing_tells_are_read() -> None:
    assert load_state_json(json.dumps(["\udcff"]).encode()) == ["\udcff"]


def test_windows_that_begin_before_all_times_are_kept() -> None:
    first = -(2**63)
    state = KeyState([Window(first - 2, first, 1, 1, 0)], first)
    [window] = KeyState.decode(state.encode()).windows
    assert (window.start, window.end) == (first - 2, first)
