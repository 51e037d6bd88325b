"""When lint is silent about the order in which a window's messages stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config.load import lint_config
from streamer.config.read_context import LintOptions

MAPPING = "pipeline: {processors: [{mapping: 'root = json().from_all()%s.index(0)'}]}"


@pytest.mark.parametrize(
    ("buffer", "sort", "codes"),
    [
        ("tumbling_window: {timestamp_mapping: root = this.ts, size: 1m", "", 1),
        ("tumbling_window: {timestamp_mapping: root = this.ts, size: 1m", ".sort_by(e -> e.ts)", 0),
        ("tumbling_window: {size: 1m", "", 0),
        ("tumbling_window: {timestamp_mapping: root = this.ts, size: 1m, order: arrival", "", 0),
        ("session_window: {timestamp_mapping: root = this.ts, gap: 1m, order: event_time", "", 0),
        ("count_window: {count: 3", "", 0),
    ],
)
def test_it_is_silent_where_the_order_is_said(
    tmp_path: Path, buffer: str, sort: str, codes: int
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"buffer: {{{buffer}}}}}\n{MAPPING % sort}\n")
    lints = lint_config(path, env={}, options=LintOptions(thorough=True))
    assert [lint.code for lint in lints] == ["order_of_arrival"] * codes
