"""Processors that others stand in, and those that ask a cache: they give what Benthos gives.

`composition.yaml` holds what a real Benthos 4.76 was asked and has answered.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Batch, Failure, Message
from streamer.sdk.processing import run

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "composition.yaml").read_text(encoding="utf-8")
)


def _message(given: dict[str, Any]) -> Message:
    content = given["content"]
    raw = content if isinstance(content, str) else json.dumps(content, separators=(",", ":"))
    return Message(raw.encode(), given.get("meta", {}))


def _told(message: Message) -> dict[str, Any]:
    content = message.raw.decode()
    with suppress(ValueError):
        content = json.loads(content)
    told: dict[str, Any] = {"content": content}
    if message.meta:
        told["meta"] = dict(message.meta)
    if message.error is not None:
        told["error"] = str(message.error)
    if isinstance(message.error, Failure):
        told["from"] = message.error.name
    return told


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_comes_out_is_what_benthos_gives(case: dict[str, Any]) -> None:
    indented = case["processors"].rstrip().replace("\n", "\n    ")
    text = f"pipeline:\n  processors:\n    {indented}\n{case.get('resources', '')}"
    config = parse_config(text, env={})
    processors = build_context(config.resources).build_all(config.processors)
    batch: Batch = [_message(one) for one in case["batch"]]
    before = [_told(message) for message in batch]
    found = list(run(processors, [batch], Execution(time.time_ns)))
    assert [[_told(message) for message in made] for made in found] == case["batches"]
    assert all(type(message) is Message for made in found for message in made)
    assert [_told(message) for message in batch] == before  # others may hold them too
