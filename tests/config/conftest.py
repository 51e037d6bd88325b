"""Configs as text in, findings as text out."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError

Findings = Callable[..., list[str]]


@pytest.fixture
def findings() -> Findings:
    """What is wrong with a config, a line each, without the file's name."""

    def find(text: str, **given: object) -> list[str]:
        given.setdefault("env", {})
        try:
            parse_config(dedent(text), "c.yaml", **given)  # type: ignore[arg-type]
        except ConfigError as e:
            return [str(lint).removeprefix("c.yaml") for lint in e.lints]
        return []

    return find
