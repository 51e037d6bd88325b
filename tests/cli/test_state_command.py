"""`streamer state start`: the settings by which a copy leaves alone the original's belongings."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.cli.state import list_sets_of_copy
from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.plan import make_plan

READING = "kafka_franz: {seed_brokers: [localhost:9092], topics: [a], consumer_group: orders}"
ALONE = f"input: {{{READING}}}\n"
TWO = f"""
input:
  broker:
    inputs:
      - {{{READING}}}
      - redpanda: {{seed_brokers: [localhost:9092], topics: [b], consumer_group: parts}}
      - redpanda: {{seed_brokers: [localhost:9092], topics: [c]}}
"""
RESOURCE = f"input: {{resource: r}}\ninput_resources: [{{label: r, {READING}}}]\n"


@pytest.mark.parametrize(("text", "groups"), [(ALONE, 1), (TWO, 2), (RESOURCE, 1)])
def test_every_consumer_group_of_a_copy_is_its_own(text: str, groups: int, tmp_path: Path) -> None:
    plan = make_plan(parse_config(text, "a.yaml"))
    sets = list_sets_of_copy(plan, tmp_path, "config")
    assert len(sets) == 1 + groups
    copy = parse_config(text, "a.yaml", sets=tuple(sets))
    assert copy.http["enabled"] is False
    again = [
        one.partition("=")[2] for one in list_sets_of_copy(make_plan(copy), tmp_path, "config")
    ]
    assert sum(one.count("-copy-") == 2 for one in again) == groups


def test_several_outputs_are_not_captured(tmp_path: Path) -> None:
    text = "output: {broker: {outputs: [{stdout: {}}, {file: {path: a}}]}}"
    sets = list_sets_of_copy(make_plan(parse_config(text, "a.yaml")), tmp_path, "captured")
    assert any(one.startswith("output=") and "captured" in one for one in sets)
    buffers = "[{label: a, tumbling_window: {size: 1s}, output: {stdout: {}}}]"
    plan = make_plan(parse_config(f"input: {{stdin: {{}}}}\nbuffers: {buffers}\n", "a.yaml"))
    with pytest.raises(StreamerError, match="several outputs"):
        list_sets_of_copy(plan, tmp_path, "captured")
