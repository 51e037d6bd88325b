"""What Python holds of Java's objects, and when it lets go of them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from py4j.finalizer import ThreadSafeFinalizer

from streamer.spark import handles
from streamer.spark.handles import EVERY, HANDLES, Handles


class _Node:
    """Is in a cycle of references."""

    def __init__(self) -> None:
        self.itself = self


def test_cycles_are_collected_when_it_is_time_to() -> None:
    found = Handles()
    gc.disable()
    try:
        for now, gone in ((0.0, True), (EVERY - 0.1, False), (EVERY, True)):
            node = weakref.ref(_Node())
            found.let_go(now)
            assert (node() is None) is gone, now
    finally:
        gc.enable()
        gc.collect()


@pytest.mark.spark
def test_no_micro_batch_leaves_anything_in_java(
    run_stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handles, "EVERY", 0.0)
    # Of streams before this one; and none is left to chance.
    monkeypatch.setattr(HANDLES, "_due", 0.0)
    held: dict[int, int] = {}

    def watch(stream: Any) -> None:
        held.setdefault(stream.delivered, len(ThreadSafeFinalizer.finalizers))

    gc.disable()
    try:
        run_stream(
            "input: {generate: {interval: 100ms, mapping: 'root = counter()'}}",
            until=lambda snapshot: len(held) > 25,
            watch=watch,
        )
    finally:
        gc.enable()
    # Seven objects of each, otherwise.
    assert held[max(held)] < held[sorted(held)[10]] + 10, held
