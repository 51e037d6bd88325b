"""Failed messages of a stream: samples from tasks and outputs, the newest of them on the driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.report.failed_messages import (
    MAX_COMPONENTS,
    MAX_KEPT_PER_COMPONENT,
    MAX_PER_TASK,
    FailedMessages,
    FailureSampler,
)
from streamer.engine.report.rejected_messages import RejectedMessages

from .stream import Run, write_lines

INPUT = """
input: { file: { paths: [ in ] } }
spark: { master: "local[1]" }
"""
CHECK = """
    - label: check
      mapping: 'root = if this.n % 10 == 7 { throw("no good: " + this.n.string()) } else { this }'
"""
FIELDS = {"label": "check", "path": "root.pipeline.processors.0"}


def failed(config: str, *times: int) -> list[dict[str, Any]]:
    """The failed messages that a stream shows, after micro-batches at these times."""
    run, found = Run(config), FailedMessages()
    run.delivery._listeners = replace(run.delivery._listeners, on_failures=found.record)
    for t in times:
        run.step(t)
    return found.newest_samples()


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "in", [{"n": n} for n in range(100)])


@pytest.mark.parametrize(
    "buffer", ["", "buffer: { system_window: { timestamp_mapping: root = this.n, size: 50s } }\n"]
)
def test_a_message_that_fails_in_a_mapping_is_shown_as_it_came(buffer: str) -> None:
    found = failed(f"{INPUT}{buffer}pipeline:\n  processors:{CHECK}", 0, 200 * SECOND, 400 * SECOND)
    assert 0 < len(found) <= 2 * MAX_PER_TASK
    one = found[-1]
    assert (one["content"], one["error"]) == ('{"n": 7}', "failed assignment (line 1): no good: 7")
    assert (one["label"], one["path"], one["fate"]) == (*FIELDS.values(), "marked")
    assert one["metadata"]["path"] == "in" and one["source"] is None and one["messages"] == 1


def test_a_message_that_an_output_rejects_or_leaves_to_the_next_is_shown() -> None:
    rejecting = "{ label: picky, reject: 'not wanted: ${! json(\"n\") }' }"
    found = failed(f"{INPUT}output: {rejecting}\n", 0)
    assert found[0]["path"] == "root.output" and found[0]["fate"] == "kept"
    assert found[0]["error"].startswith("not wanted: ") and found[0]["reason"] == "config"
    assert found[0]["content"].startswith('{"n":')
    found = failed(f"{INPUT}output: {{ fallback: [ {rejecting}, {{ drop: {{}} }} ] }}\n", 0)
    assert {one["fate"] for one in found} == {"fallback"} and len(found) == MAX_PER_TASK
    assert {(one["label"], one["path"]) for one in found} == {("picky", "root.output.fallback.0")}


def bodies(*contents: bytes, path: str = FIELDS["path"]) -> list[bytes]:
    sampler = FailureSampler()
    for content in contents:
        meta = {"kafka_topic": "t", "kafka_partition": 3, "kafka_offset": 41}
        sampler.add("marked", {**FIELDS, "path": path}, "it broke", [Message(content, meta)])
    body = sampler.encode_samples()
    return [] if body is None else [body]


def test_a_task_takes_a_few_and_cuts_them() -> None:
    [body] = bodies(*[b"x" * 100_000] * 50)
    assert len(orjson.loads(body)) == MAX_PER_TASK and len(body) < 20_000
    assert bodies() == []


def test_the_newest_are_kept_within_bounds_with_their_place_in_kafka() -> None:
    found = FailedMessages()
    for batch in range(MAX_KEPT_PER_COMPONENT):
        found.record(batch, batch, bodies(b"a", b"b"))
    kept = found.newest_samples(limit=1000)
    assert len(kept) == MAX_KEPT_PER_COMPONENT
    assert kept[0]["source"] == {"topic": "t", "partition": "3", "offset": "41"}
    assert [one["micro_batch"] for one in kept[:3]] == [49, 49, 48]
    # One noisy component leaves room for others, and there are not any number of these.
    for number in range(MAX_COMPONENTS + 5):
        found.record(100 + number, 0, bodies(b"c", path=f"root.{number}"))
    assert len(found.newest_samples(limit=1000)) == MAX_KEPT_PER_COMPONENT + MAX_COMPONENTS - 1
    assert [one["content"] for one in found.newest_samples("root.3")] == ["c"]


def test_a_micro_batch_that_comes_again_shows_its_messages_once() -> None:
    found = FailedMessages()
    rejected = RejectedMessages(
        *("output", "out", "refused", "refused", ["mapping", "m", "pipeline.processors.1"]),
        *("dropped", None, 5, [Message(b"a")]),
    )
    for _ in range(3):
        found.record(7, 0, bodies(b"a"), [rejected])
    first, second = found.newest_samples()
    assert {first["fate"], second["fate"]} == {"marked", "dropped"}
    [refused] = found.newest_samples("root.output")
    assert refused["messages"] == 5
    cause = {"name": "mapping", "label": "m", "path": "root.pipeline.processors.1"}
    assert refused["cause"] == cause
