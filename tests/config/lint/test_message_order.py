"""When lint is silent about the order in which a window's messages stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer.config.load import lint_config
from streamer.config.read_context import LintOptions

MAPPING = "pipeline: {processors: [{mapping: 'root = json().from_all()%s'}]}"


@pytest.mark.parametrize(
    ("buffer", "read", "codes"),
    [
        ("tumbling_window: {timestamp_mapping: root = this.ts, size: 1m", ".index(0)", 1),
        ("tumbling_window: {timestamp_mapping: root = this.ts, size: 1m", ".slice(-9)", 1),
        ("tumbling_window: {timestamp_mapping: root = this.ts, size: 1m", ".slice(1, 3)", 0),
        ("tumbling_window: {timestamp_mapping: root = this.ts, size: 1m", ".max_by(e -> e.ts)", 0),
        (
            "tumbling_window: {timestamp_mapping: root = this.ts, size: 1m",
            ".sort_by(e -> e.ts).index(0)",
            0,
        ),
        ("tumbling_window: {size: 1m", ".index(0)", 0),
        (
            "tumbling_window: {timestamp_mapping: root = this.ts, size: 1m, order: arrival",
            ".index(0)",
            0,
        ),
        (
            "session_window: {timestamp_mapping: root = this.ts, gap: 1m, order: event_time",
            ".index(0)",
            0,
        ),
        ("count_window: {count: 3", ".index(0)", 0),
    ],
)
def test_it_is_silent_where_the_order_is_said(
    tmp_path: Path, buffer: str, read: str, codes: int
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"buffer: {{{buffer}}}}}\n{MAPPING % read}\n")
    lints = lint_config(path, env={}, options=LintOptions(thorough=True))
    assert [lint.code for lint in lints] == ["order_of_arrival"] * codes


WINDOW = "tumbling_window: {timestamp_mapping: root = this.ts, size: 1m, key_mapping: root = %s}"


@pytest.mark.parametrize(
    ("key", "field", "codes"),
    [
        ("this.user", "this.user", 0),
        ("this.user", "this.user.name", 0),
        ("this.user.id", "this.user.name", 1),
        ("this.user + this.shop", "this.shop", 0),
        ("this.user", "this.ts", 1),
        ("this.user", 'json("v").from_all().sum()', 0),
        ("this.user", "@window_key", 0),
        ("null", "this.light", 0),
    ],
)
def test_a_field_of_the_first_message_is_named_unless_all_have_the_same(
    tmp_path: Path, key: str, field: str, codes: int
) -> None:
    mapping = f'root = if batch_index() == 0 {{ {{"a": {field}}} }} else {{ deleted() }}'
    group = """{group_by_value: {value: '${! json("light") }'}}"""
    path = tmp_path / "config.yaml"
    path.write_text(
        f"buffer: {{{WINDOW % key}}}\n"
        f"pipeline: {{processors: [{group}, {{mapping: {json.dumps(mapping)}}}]}}\n"
    )
    lints = lint_config(path, env={}, options=LintOptions(thorough=True))
    assert [lint.code for lint in lints] == ["order_of_arrival"] * codes
