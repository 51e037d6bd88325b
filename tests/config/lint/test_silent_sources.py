"""A warning of windows that wait for ever for a key, a partition or an input."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config import lint_config
from streamer.config.read_context import LintOptions


def codes(directory: Path, fields: str, buffer: str = "tumbling_window") -> list[str]:
    path = directory / "config.yaml"
    path.write_text(
        f"buffer: {{{buffer}: {{timestamp_mapping: root = this.at, size: 10s, "
        f"key_mapping: root = this.k, {fields}}}}}\noutput: {{drop: {{}}}}\n"
    )
    return [lint.code for lint in lint_config(path, options=LintOptions(thorough=True))]


@pytest.mark.parametrize(
    "fields",
    [
        "clock_scope: key",
        "clock_scope: partition, source_idle_timeout: 0s",
        "clock_scope: input, source_idle_timeout: 0s",
    ],
)
def test_an_endless_wait_is_named(tmp_path: Path, fields: str) -> None:
    assert codes(tmp_path, fields) == ["endless_wait"]
    assert codes(tmp_path, f"{fields}, idle_timeout: 5m") == []


def test_windows_that_wait_for_a_while_are_fine(tmp_path: Path) -> None:
    for fields in ("clock_scope: stream", "clock_scope: partition", "clock: system"):
        assert codes(tmp_path, fields) == []
