"""Fields of other systems, and of other buffers: the finding says what there is instead."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError

TIME = "timestamp_mapping: root = this.ts"


@pytest.mark.parametrize(
    ("config", "hint"),
    [
        (
            f"buffer: {{tumbling_window: {{{TIME}, size: 1m, grace: 5s}}}}",
            "it is called allowed_lateness here",
        ),
        (f"buffer: {{tumbling_window: {{{TIME}, length: 1m}}}}", "it is called size here"),
        (
            f"buffer: {{hopping_window: {{{TIME}, size: 1m, advance_by: 5s}}}}",
            "it is called every here",
        ),
        (
            f"buffer: {{session_window: {{{TIME}, gap: 1m, group_by: root = this.k}}}}",
            "it is called key_mapping here",
        ),
        (
            f"buffer: {{tumbling_window: {{{TIME}, size: 1m, gap: 5s}}}}",
            "session_window has it, tumbling_window does not",
        ),
        (f"buffer: {{session_window: {{{TIME}, gap: 1m, offset: 5s}}}}", "have it, session"),
        (f"buffer: {{window_join: {{{TIME}, emit: each}}}}", "pairs always come out at once"),
        (
            f"buffer: {{tumbling_window: {{{TIME}, size: 1m, fill_gaps: true}}}}",
            "it is called empty_windows here",
        ),
        (f"buffer: {{tumbling_window: {{{TIME}, sise: 1m}}}}", "did you mean size?"),
        (f"buffer: [{{tumbling_window: {{{TIME}, size: 1m}}}}]", "a list of buffers is the field"),
        (
            f"buffer: {{tumbling_window: {{{TIME}, size: 1m}}, none: {{}}}}",
            "keep one of them; several are a list",
        ),
        (
            f"buffer: {{session_window: {{{TIME}, gap: 'root = this.gap'}}}}",
            "gap is the same for all messages, and takes no mapping; gap_mapping takes one",
        ),
        (
            "output: {sql_insert: {driver: sqlite, dsn: a, table: t, columns: [a], "
            "args_mapping: 'root = [1]', on_conflict: x}}",
            "it is called upsert_by here",
        ),
    ],
)
def test_what_there_is_instead_is_named(config: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(config)
    assert hint in str(caught.value)
