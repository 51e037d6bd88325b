"""What Python holds of Java's objects, and when it lets go of them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from py4j.finalizer import ThreadSafeFinalizer

from streamer.spark.jvm import java_reference_gc
from streamer.spark.jvm.java_reference_gc import (
    COLLECT_INTERVAL_S,
    JAVA_REFERENCES,
    JavaReferenceCollector,
)


class _Node:
    """Is in a cycle of references."""

    def __init__(self) -> None:
        self.itself = self


def test_cycles_are_collected_when_it_is_time_to() -> None:
    found = JavaReferenceCollector()
    gc.disable()
    try:
        for now, gone in (
            (0.0, True),
            (COLLECT_INTERVAL_S - 0.1, False),
            (COLLECT_INTERVAL_S, True),
        ):
            node = weakref.ref(_Node())
            found.collect_if_due(now)
            assert (node() is None) is gone, now
    finally:
        gc.enable()
        gc.collect()


@pytest.mark.spark
def test_no_micro_batch_leaves_anything_in_java(
    run_stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java_reference_gc, "COLLECT_INTERVAL_S", 0.0)
    # Of streams before this one; and none is left to chance.
    monkeypatch.setattr(JAVA_REFERENCES, "_due", 0.0)
    held: dict[int, int] = {}

    def watch(stream: Any) -> None:
        held.setdefault(stream.delivered_batches, len(ThreadSafeFinalizer.finalizers))

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
