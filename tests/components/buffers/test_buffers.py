"""`empty`, `memory` and `system_window`: what they take, refuse and give to the plan."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.components.buffers.memory import MemoryBuffer
from streamer.components.buffers.none import NoBuffer
from streamer.components.buffers.system_window import SystemWindowBuffer
from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.durations import HOUR, MINUTE, SECOND
from streamer.core.errors import ConfigError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.plan import make_plan
from streamer.window.settings.system_window import SystemWindow


def buffer(yaml: str) -> Any:
    config = parse_config(f"buffer:\n  {yaml}\n", env={})
    return build_context(config.resources).build(config.buffer)


def cut(policy: str, *batches: str, ex: Execution | None = None) -> list[str]:
    """Cut batches, each given as a text of one-character messages."""
    memory = buffer(f"memory: {{batch_policy: {{enabled: true, {policy}}}}}")
    incoming: list[Batch] = [[Message(char.encode()) for char in text] for text in batches]
    found = memory.batches(incoming, ex or Execution(now=lambda: 0))
    return ["".join(m.raw.decode() for m in batch) for batch in found]


def test_without_settings_there_is_nothing_to_build() -> None:
    assert buffer("none: {}") == NoBuffer()


def test_memory_leaves_batches_as_they_come_unless_a_policy_is_enabled() -> None:
    memory = buffer("memory: {limit: 100, batch_policy: {count: 2}}")
    assert memory == MemoryBuffer(100, None)
    batches = [[Message(b"a")], [Message(b"b"), Message(b"c")]]
    assert list(memory.batches(batches, Execution(now=lambda: 0))) == batches


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("count: 2", ["ab", "cd", "e"]),
        ("byte_size: 3", ["abc", "de"]),
        ("count: 4, byte_size: 3", ["abc", "de"]),
        ("period: 1s", ["abcde"]),
        ('check: content() == "b"', ["ab", "cde"]),
        ('count: 2, check: content() == "a"', ["a", "bc", "de"]),
    ],
)
def test_a_micro_batch_is_cut_and_its_rest_is_a_batch(policy: str, expected: list[str]) -> None:
    assert cut(policy, "a", "b", "c", "d", "e") == expected


def test_a_batch_of_the_input_is_never_split() -> None:
    assert cut("count: 2", "a", "bcde", "f") == ["abcde", "f"]


def test_a_check_sees_the_batch_so_far() -> None:
    assert cut("check: batch_size() >= 2", "a", "b", "c") == ["ab", "c"]


def test_a_check_that_fails_is_logged_and_closes_nothing() -> None:
    logged: list[Any] = []
    ex = Execution(now=lambda: 0, log=lambda *line: logged.append(line))
    assert cut("check: content().number() > 1", "a", "2", "c", ex=ex) == ["a2", "c"]
    assert [(level, text[:36], fields) for level, text, fields in logged] == [
        ("ERROR", "Failed to execute batch check query:", {"label": "", "path": "root.buffer"}),
    ] * 2


def test_processors_of_a_policy_make_one_batch_again() -> None:
    assert cut("count: 2, processors: [{split: {}}, {mapping: root = content()}]", *"abc") == [
        "ab",
        "c",
    ]
    assert cut("count: 2, processors: [{mapping: root = deleted()}]", *"abc") == []


@pytest.mark.parametrize(
    ("yaml", "text"),
    [
        ("memory: {limit: 0}", "limit is 0; expected a number of bytes above 0"),
        ("memory: {batch_policy: {enabled: true}}", "must have at least one active trigger"),
        ("memory: {batch_policy: {enabled: true, count: -1}}", "count is -1; expected 0"),
        ("memory: {batch_policy: {enabled: true, period: 0s}}", "period must be longer than 0s"),
        ("system_window: {}", "size"),
        ("system_window: {size: 0s}", "size is 0s, but a window needs a length"),
        ("system_window: {size: 1m, slide: 1m}", "slide is 1m, but it must be shorter"),
        ("system_window: {size: 1m, slide: -1s}", "slide is -1s, but it must not be negative"),
        ("system_window: {size: 1m, offset: -1m}", "offset is -1m, but it must be within"),
        ("system_window: {size: 1m, allowed_lateness: 1m}", "allowed_lateness is 1m, but"),
        ("system_window: {size: 1m, on_expired: wait}", "on_expired"),
        ("system_window: {size: 1m, end_of_input: stop}", "end_of_input"),
        ("system_window: {size: 1m, timestamp_mapping: ''}", "timestamp_mapping is empty"),
    ],
)
def test_settings_that_cannot_work_are_refused(yaml: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        buffer(yaml)


def test_a_system_window_has_the_defaults_of_benthos() -> None:
    found = buffer("system_window: {size: 1h}")
    assert isinstance(found, SystemWindowBuffer)
    assert found.window == SystemWindow(size=HOUR)
    assert (found.timestamp.text, found.late_output) == ("root = now()", None)


def test_a_system_window_takes_every_field() -> None:
    found = buffer(
        "system_window: {timestamp_mapping: root = this.at, size: 1h, slide: 10m, offset: -5m, "
        "allowed_lateness: 30s, on_expired: keep, expire_after: 1m, end_of_input: flush}"
    )
    assert found.window == SystemWindow(
        size=HOUR,
        slide=10 * MINUTE,
        offset=-5 * MINUTE,
        allowed_lateness=30 * SECOND,
        expire_after=MINUTE,
        on_expired="keep",
        end_of_input="flush",
    )
    assert found.timestamp.text == "root = this.at"


def test_sqlite_stores_nothing_and_its_processors_are_the_first() -> None:
    config = parse_config(
        "buffer:\n  sqlite:\n    path: a.db\n    pre_processors: [{mapping: root = 1}]\n"
        "    post_processors: [{noop: {}}]\npipeline: {processors: [{noop: {}}]}\n"
    )
    assert config.buffer.name == "none"
    assert [one.path for one in config.processors] == [
        "buffer.sqlite.pre_processors.0",
        "buffer.sqlite.post_processors.0",
        "pipeline.processors.0",
    ]
    assert make_plan(config, "OFF").window is None
