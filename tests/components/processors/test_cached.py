"""`cached`: what is made is made once for a key, for as long as it is kept.

The first two are the cases of Benthos's documentation, without servers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.components.processors.cached import pack_payloads, unpack_payloads
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.sdk.processing import run

SECOND = 10**9


class Clock:
    """An execution on a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * SECOND
        self.logged: list[tuple[str, str]] = []
        self.ex = Execution(lambda: self.now, self._log)

    def _log(self, level: str, text: str, fields: Any) -> None:
        self.logged.append((level, text))


def built(yaml: str) -> Any:
    config = parse_config(yaml, env={})
    processors = build_context(config.resources).build_all(config.processors)

    def through(clock: Clock, *given: Message) -> list[Any]:
        return [one.doc for made in run(processors, [list(given)], clock.ex) for one in made]

    return through


ENRICHMENT = """
pipeline:
  processors:
    - branch:
        processors:
          - cached:
              key: '${! meta("kafka_topic") }-${! meta("kafka_partition") }'
              cache: foo_cache
              processors:
                - mapping: 'root = {"of": @kafka_topic + "/" + @kafka_partition, "n": count("a")}'
        result_map: 'root.enrichment = this'
cache_resources:
  - label: foo_cache
    memory:
      compaction_interval: ""
"""


def test_what_is_the_same_for_a_partition_is_made_once_for_it() -> None:
    def of(partition: str) -> Message:
        return Message(b"{}", {"kafka_topic": "t", "kafka_partition": partition})

    through, clock = built(ENRICHMENT), Clock()
    made = through(clock, of("0"), of("1"), of("0"))
    clock.now += 10**6 * SECOND
    made += through(clock, of("1"))
    assert [one["enrichment"] for one in made] == [
        {"of": "t/0", "n": 1},
        {"of": "t/1", "n": 2},
        {"of": "t/0", "n": 1},
        {"of": "t/1", "n": 2},
    ]


PERIODIC = """
pipeline:
  processors:
    - branch:
        request_map: 'root = ""'
        processors:
          - cached:
              key: static_foo
              cache: foo_cache
              ttl: 10m
              processors:
                - mapping: 'root.n = count("b")'
        result_map: 'root.foo = this.n'
cache_resources:
  - label: foo_cache
    memory: {}
"""


def test_what_changes_slowly_is_made_anew_after_its_time() -> None:
    through, clock = built(PERIODIC), Clock()
    found = []
    for _ in range(5):
        found += [one["foo"] for one in through(clock, Message(b"{}"), Message(b"{}"))]
        clock.now += 240 * SECOND
    assert found == [1, 1, 1, 1, 1, 1, 2, 2, 2, 2]


# As Benthos 4.76 has stored the messages `"a"` and `{"b":1}` under a key.
STORED = bytes.fromhex("000000010000000200000003226122000000077b2262223a317d")


def test_the_stored_form_is_that_of_benthos(tmp_path: Path) -> None:
    assert pack_payloads([b'"a"', b'{"b":1}']) == STORED
    (tmp_path / "k").write_bytes(STORED)
    through = built(
        "pipeline: {processors: [{cached: {cache: c, key: k, processors: [noop: {}]}}]}\n"
        f"cache_resources: [{{label: c, file: {{directory: {tmp_path}}}}}]\n"
    )
    assert through(Clock(), Message(b"x")) == ["a", {"b": 1}]


@pytest.mark.parametrize("length", range(len(STORED)))
def test_what_is_cut_short_is_no_stored_form(length: int) -> None:
    with pytest.raises(ValueError, match="failed to extract"):
        unpack_payloads(STORED[:length])


def test_what_cannot_be_stored_goes_on_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "none").symlink_to("nowhere")
    through = built(
        "pipeline: {processors: [{cached: {cache: c, key: none/k, processors: [noop: {}]}}]}\n"
        f"cache_resources: [{{label: c, file: {{directory: {tmp_path}}}}}]\n"
    )
    clock = Clock()
    assert through(clock, Message(b"5")) == [5]
    [(level, text)] = clock.logged
    assert level == "ERROR" and text.startswith("failed to write result to cache: open ")
