"""What lint says of a list of buffers."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError

OWN_TIMES = "tumbling_window: {size: 1h, timestamp_mapping: root = this.at}"
HOURS = "{label: hours, tumbling_window: {size: 1h}}"
DAYS = "{label: days, from: hours, tumbling_window: {size: 1d}}"
KEY_CLOCK = "session_window: {gap: 1h, clock_scope: key, key_mapping: root = 1}"
SESSIONS = "session_window: {gap: 1h}"


def listed(*buffers: str, more: str = "") -> str:
    return f"buffers: [{', '.join(buffers)}]\n{more}"


def behind(window: str, what: str) -> str:
    """Return a config with a window that takes the results of another."""
    return listed(f"{{label: first, {window}}}", f"{{label: second, from: first, {what}}}")


@pytest.mark.parametrize(
    "text",
    [
        listed(HOURS, DAYS),
        listed(DAYS, HOURS, more="output: {drop: {}}"),
        listed(HOURS, "{label: a, from: hours, count_window: {count: 3}}", DAYS),
        behind("count_window: {count: 2}", "count_window: {count: 3}"),
        behind(SESSIONS, "tumbling_window: {size: 1d}"),
        behind(
            "session_window: {gap: 1h, max_duration: 2h}",
            "tumbling_window: {size: 1d, timestamp_mapping: root = @window_start_timestamp}",
        ),
        behind(SESSIONS, "system_window: {size: 1d, timestamp_mapping: root = now()}"),
        behind("system_window: {size: 1m}", "system_window: {size: 1h}"),
        behind("tumbling_window: {size: 1m}", "session_window: {gap: 1h, clock: system}"),
    ],
)
def test_what_goes_together_is_right(text: str) -> None:
    assert len(parse_config(text).buffers) > 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (listed(HOURS, more="buffer: {none: {}}"), "field buffer does not go with buffers"),
        (listed(HOURS, more="pipeline: {}"), "field pipeline .* move it below the buffer"),
        ("buffer: [{tumbling_window: {size: 1h}}]", "a list of buffers is the field `buffers`"),
        (listed("{tumbling_window: {size: 1h}}"), "tumbling_window has no label"),
        (listed(HOURS, HOURS), "label 'hours' collides"),
        (listed("{label: a, memory: {}}"), "memory makes no windows"),
        (listed("{label: a, tumbling_window: {size: 1h, retention: 1d}}"), "one buffer.*remove it"),
        (listed(HOURS, DAYS.replace("hours", "hour")), r"from is 'hour'.*did you mean hours\?"),
        (listed(HOURS, DAYS.replace("hours", "x")), "the buffers' labels are hours, days"),
        (listed(DAYS.replace("hours", "days")), "takes its own results: days → days"),
        (listed(DAYS, HOURS.replace("hours,", "hours, from: days,")), "hours → days → hours"),
        (
            listed(f"{HOURS[:-1]}, output: {{drop: {{}}}}}}", more="output: {stdout: {}}"),
            "no buffer sends here",
        ),
        (
            behind(SESSIONS, "window_join: {left: a, right: b, within: 1s}"),
            "a window_join names what it takes by its sides",
        ),
        (
            behind("tumbling_window: {size: 1h, emit: changes}", "count_window: {count: 2}"),
            "first has `emit: changes`: it gives a window more than once.*leave emit out",
        ),
        (
            behind(KEY_CLOCK, "tumbling_window: {size: 1h}"),
            "first has `clock_scope: key`",
        ),
        (
            behind("tumbling_window: {size: 1h}", KEY_CLOCK),
            "clock_scope is 'key', but behind another buffer",
        ),
        (
            behind("count_window: {count: 2}", "tumbling_window: {size: 1h}"),
            "first has windows without a time",
        ),
        (
            behind(SESSIONS, OWN_TIMES),
            "sessions of first may be of any length.*max_duration",
        ),
        (
            behind("tumbling_window: {size: 1h}", "system_window: {size: 1d}"),
            r"goes by the machine's clock.*root = now\(\)",
        ),
        (
            behind("system_window: {size: 1m, allowed_lateness: 5s}", "system_window: {size: 1h}"),
            "allowed_lateness is 0s, but the windows of first come 5s after.*set it to 5s or more",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){said}"):
        parse_config(text)


def test_each_buffer_is_looked_at_as_if_it_were_alone() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(
            listed(
                "{label: a, tumbling_window: {size: 0s}, output: {files: {}}}",
                "{label: b, pipeline: {processors: [{mappin: x}]}, tumbling_window: {siz: 1h}}",
            )
        )
    found = {lint.code for lint in caught.value.lints}
    assert found == {"bad_value", "unknown_component", "unknown_field", "missing_field"}


SIDES = "".join(
    f"{{ label: {name}, generate: {{ mapping: 'root = {{}}' }} }}, " for name in ("a", "b", "c")
)
THREE_INPUTS = f"input: {{ broker: {{ inputs: [ {SIDES[:-2]} ] }} }}\n"


def join(label: str, left: str, right: str, more: str = "") -> str:
    fields = f"left: {left}, right: {right}, within: 1s{more}"
    return f"{{ label: {label}, window_join: {{ {fields} }} }}"


def test_a_join_takes_the_results_of_another_one() -> None:
    first, second = join("first", "a", "b"), join("second", "first", "c")
    parse_config(f"{THREE_INPUTS}buffers: [ {first}, {second} ]")
    parse_config(f"{THREE_INPUTS}buffers: [ {second}, {first} ]")


@pytest.mark.parametrize(
    ("buffers", "said"),
    [
        ([join("one", "a", "b")], "joins a and b, and there is another input: 'c'"),
        ([join("one", "a", "b"), join("two", "on", "c")], r"field left is 'on'.*did you mean one"),
        ([join("one", "two", "a"), join("two", "one", "b")], "takes its own results: one → two"),
        ([join("one", "one", "a")], "takes its own results: one → one"),
        (
            [join("one", "a", "b"), join("two", "one", "c", ", clock_scope: key")],
            "clock_scope",
        ),
        (
            [
                join("one", "a", "b"),
                join("two", "one", "c", ", right_key_mapping: root = this.k"),
            ],
            "right_key_mapping has no meaning without key_mapping",
        ),
        (
            [
                join("one", "a", "b"),
                join("two", "c", "one", ", right_timestamp_mapping: root = this.at"),
            ],
            "results of buffers have times of their own",
        ),
        (
            [
                "{ label: rows, count_window: { count: 2 } }",
                join("two", "rows", "c"),
            ],
            "rows has windows without a time",
        ),
        (
            [
                "{ label: rows, keyed_state: { key_mapping: root = this.k, order: event_time, "
                "timestamp_mapping: root = this.at } }",
                join("two", "rows", "c"),
            ],
            "rows gives messages that are in no window",
        ),
    ],
)
def test_sides_that_cannot_be_joined_are_refused(buffers: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){said}"):
        parse_config(f"{THREE_INPUTS}buffers: [ {', '.join(buffers)} ]")
