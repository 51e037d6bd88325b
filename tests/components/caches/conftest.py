"""Caches built from YAML as a config has it, on a clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.sdk.cache import Cache
from streamer.sdk.spec import Kind


class Run:
    """An execution on a scripted clock; it keeps what is logged and counted."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * 10**9
        self.logged: list[tuple[str, str]] = []
        self.counted: list[tuple[str, str]] = []
        self.ex = Execution(lambda: self.now, self._log, self._count)

    def _log(self, level: str, text: str, fields: Any) -> None:
        self.logged.append((level, text))

    def _count(self, name: str, by: int = 1, **labels: str) -> None:
        self.counted += [(name, labels["operation"])] * by


def _indented(yaml: str) -> str:
    return yaml.strip().replace("\n", "\n    ")


Caches = Callable[..., Cache]


@pytest.fixture
def a_run() -> Run:
    return Run()


@pytest.fixture
def cache() -> Caches:
    """Build a cache from its YAML; further ones with labels may follow, `---` between them."""

    def build(yaml: str) -> Cache:
        items = f"label: tested\n{yaml}".split("\n---\n")
        text = "cache_resources:\n" + "\n".join(f"  - {_indented(item)}" for item in items)
        context = build_context(parse_config(text, env={}).resources)
        found: Cache = context.resource(Kind.CACHE, "tested")
        return found

    return build
