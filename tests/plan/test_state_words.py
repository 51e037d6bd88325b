"""What a checkpoint is bound to, in the words of configs."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.plan import make_plan
from streamer.plan.state_words import compare_states

KEYED = "timestamp_mapping: root = this.ts, key_mapping: root = this.k"


def bound(buffer: str) -> str:
    text = f"input: {{stdin: {{}}}}\nbuffer: {{{buffer}}}\noutput: {{drop: {{}}}}"
    return str(make_plan(parse_config(text, "c.yaml", env={})).fingerprint["window"])


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            f"tumbling_window: {{size: 10m, {KEYED}}}",
            f"session_window: {{gap: 1m, {KEYED}}}",
            ("buffer tumbling_window (size: 10m)", "buffer session_window (gap: 1m)"),
        ),
        (
            f"tumbling_window: {{size: 10m, {KEYED}}}",
            f"hopping_window: {{size: 10m, every: 5m, {KEYED}}}",
            ("buffer tumbling_window (size: 10m)", "buffer hopping_window (size: 10m, every: 5m)"),
        ),
        (
            f"tumbling_window: {{size: 10m, {KEYED}}}",
            "tumbling_window: {size: 10m, timestamp_mapping: root = this.ts}",
            (
                "buffer tumbling_window (size: 10m, key_mapping: given)",
                "buffer tumbling_window (size: 10m, key_mapping: none)",
            ),
        ),
        (
            f"session_window: {{gap: 1m, max_duration: 1h, {KEYED}}}",
            f"session_window: {{gap: 2m, {KEYED}}}",
            (
                "buffer session_window (gap: 1m, max_duration: 1h)",
                "buffer session_window (gap: 2m)",
            ),
        ),
        (
            "session_window: {gap: 1m, max_count: 5, max_duration: 1h, max_duration_origin: start}",
            "session_window: {gap: 1m, gap_mapping: root = this.gap}",
            (
                "buffer session_window (gap: 1m, max_duration: 1h from start, max_count: 5)",
                "buffer session_window (gap: 1m, or as the message says)",
            ),
        ),
        (
            "sliding_window: {size: 1m, mode: event, delay: 5s}",
            "sliding_window: {size: 1m, mode: event, emit_at: event_time}",
            (
                "buffer sliding_window (size: 1m, mode: event, delay: 5s)",
                "buffer sliding_window (size: 1m, mode: event, emit_at: event_time)",
            ),
        ),
        (
            "state_window: {begin_when: this.a, key_mapping: root = this.k}",
            "count_window: {count: 5, key_mapping: root = this.k}",
            ("buffer state_window", "buffer count_window (count: 5)"),
        ),
        (
            "system_window: {timestamp_mapping: root = this.ts, size: 10s}",
            "system_window: {timestamp_mapping: root = this.ts, size: 10s, slide: 5s}",
            ("buffer system_window (size: 10s)", "buffer system_window (size: 10s, slide: 5s)"),
        ),
        (
            "count_window: {count: 5, key_mapping: root = this.k}",
            "none: {}",
            ("buffer count_window (count: 5)", "buffer none"),
        ),
    ],
)
def test_windows_are_those_of_the_config(before: str, after: str, words: tuple[str, str]) -> None:
    assert compare_states("window", bound(before), bound(after)) == words


def test_of_several_buffers_those_that_changed_are_named() -> None:
    same = "0:hourly from input grid(1h,1h,0s),stream,stream,panes,keyed"
    day, week = (
        f"{same} | 1:total from hourly grid({size},{size},0s),stream,stream,panes"
        for size in ("1d", "7d")
    )
    assert compare_states("window", day, week) == (
        "buffers total (from hourly, buffer tumbling_window (size: 1d))",
        "buffers total (from hourly, buffer tumbling_window (size: 7d))",
    )


def test_what_no_field_shows_is_said_all_the_same() -> None:
    before, after = compare_states("window", "global of ab", "global of cd")
    assert before == "buffer global_window (with other aggregates, or kept in another form)"
    assert after == "buffer global_window"


def test_a_fingerprint_of_another_version_is_shown_as_it_is() -> None:
    assert compare_states("window", "?!", "none") == ("buffer ?!", "buffer none")


def test_inputs_and_keys() -> None:
    assert compare_states("input", "file", "stdin") == ("input file", "input stdin")
    assert compare_states("key", None, "root = this.k") == (
        "grouping none",
        "grouping by root = this.k",
    )
