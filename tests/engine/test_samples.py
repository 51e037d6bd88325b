"""Samples of messages as the stages of a stream take them, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamer.core.durations import SECOND
from streamer.engine.report.message_sampler import SAMPLES_PER_COMPONENT
from streamer.engine.report.message_samples import MessageSamples

from .stream import Run, write_lines

INPUT = """
input:
  file: { paths: [in] }
  processors: [ { label: first, mapping: root = this } ]
spark: { master: "local[2]" }
"""
FAILING = """
pipeline:
  processors:
    - { label: check, mapping: 'root = if this.n == 57 { throw("no good") } else { this }' }
    - { label: few, mapping: 'root = if this.n % 2 == 0 { deleted() }' }
"""
WINDOWS = """
buffer: { system_window: { timestamp_mapping: root = this.n, size: 10s } }
pipeline: { processors: [ %s ] }
"""
WHOLE = "{ label: whole, mapping: 'root.n = batch_size()' }"
FOLDED = "{ mapping: 'root = if batch_index() == 0 { json(\"n\").from_all().sum() }' }"


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    before = SAMPLES_PER_COMPONENT.set(2)
    yield
    SAMPLES_PER_COMPONENT.reset(before)


def tapped(run: Run, *times: int) -> list[dict[str, Any]]:
    """The samples of micro-batches at these times."""
    tap = MessageSamples()
    run.delivery._listeners = replace(run.delivery._listeners, on_samples=tap.record)
    for t in times:
        run.step(t)
    return tap.samples()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "in", [{"n": n} for n in range(100)])
    return tmp_path / "in"


def test_each_component_of_a_stream_has_samples(source: Path) -> None:
    by_path: dict[str, list[dict[str, Any]]] = {}
    for sample in tapped(Run(INPUT + FAILING), 0):
        by_path.setdefault(sample["path"], []).append(sample)
    assert sorted(by_path) == [
        "root.input",
        "root.input.processors.0",
        "root.output",
        "root.pipeline.processors.0",
        "root.pipeline.processors.1",
    ]
    assert all("before" not in sample for sample in by_path["root.input"])
    assert all("after" not in sample for sample in by_path["root.output"])
    [failed] = [one for one in by_path["root.pipeline.processors.0"] if one["failed"]]
    assert failed["before"][0][0]["content"] == '{"n":57}'
    assert "no good" in str(failed["after"])
    # It has failed at the first processor, and only comes by the second one.
    assert not [one for one in by_path["root.pipeline.processors.1"] if one["failed"]]
    assert any(one["after"] == [] for one in by_path["root.pipeline.processors.1"])


def test_a_window_is_seen_as_the_batch_that_it_is(source: Path) -> None:
    found = tapped(Run(INPUT + WINDOWS % WHOLE), 5 * SECOND, 25 * SECOND)
    whole = [one for one in found if one["label"] == "whole"]
    assert max(one["before_messages"] for one in whole) > 5
    assert all(len(one["before"][0]) <= 5 for one in whole)
    assert {one["path"] for one in found} >= {"root.input", "root.output"}


def test_what_a_folded_window_writes_is_seen(source: Path) -> None:
    run = Run(INPUT + WINDOWS % FOLDED)
    found = tapped(run, 5 * SECOND, 25 * SECOND)
    [printed, *_] = run.printed()
    [output, *_] = [one for one in found if one["path"] == "root.output"]
    assert output["before"][0][0]["content"] == str(printed)


def test_without_anybody_who_watches_there_are_none(source: Path) -> None:
    SAMPLES_PER_COMPONENT.set(0)
    assert tapped(Run(INPUT + FAILING), 0) == []


def test_what_is_watched_comes_out_the_same(source: Path) -> None:
    watched = Run(INPUT + FAILING)
    watched.step(0)
    SAMPLES_PER_COMPONENT.set(0)
    alone = Run(INPUT + FAILING)
    alone.step(0)
    assert watched.printed() == alone.printed()
    assert watched.delivery.metrics.counts == alone.delivery.metrics.counts
