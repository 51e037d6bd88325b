"""Processors built from YAML as a config has it, and a run that writes down what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.processing import Processor


class Run:
    """An execution on a scripted clock; it keeps what is logged and counted."""

    def __init__(self) -> None:
        self.logged: list[tuple[str, str]] = []
        self.fields: list[dict[str, Any]] = []
        self.counted: list[tuple[str, int]] = []
        self.ex = Execution(now=lambda: 0, log=self._log, count=self._count)

    def _log(self, level: str, text: str, fields: Any) -> None:
        self.logged.append((level, text))
        self.fields.append(dict(fields))

    def _count(self, name: str, by: int = 1, **labels: str) -> None:
        self.counted.append((name, by))


Make = Callable[[str], Processor]


@pytest.fixture
def a_run() -> Run:
    return Run()


@pytest.fixture
def make() -> Make:
    """Build a processor from the YAML of one list item, such as `split: {size: 2}`."""

    def build(yaml: str) -> Processor:
        indented = yaml.strip().replace("\n", "\n      ")
        config = parse_config(f"pipeline:\n  processors:\n    - {indented}\n", env={})
        processor: Processor = build_context(config.resources).build(config.processors[0])
        return processor

    return build


def messages(*payloads: str) -> Batch:
    return [Message(payload.encode()) for payload in payloads]


def payloads(batches: list[Batch]) -> list[list[str]]:
    return [[message.raw.decode() for message in batch] for batch in batches]
