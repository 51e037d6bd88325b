"""The window buffers that follow event times, and counts: what they take, refuse and give."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.components import catalog
from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.durations import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from streamer.core.errors import ConfigError
from streamer.sdk.spec import Kind
from streamer.sdk.window_buffer.event_time import WindowBuffer
from streamer.window.settings.window_types import (
    Count,
    EmptyWindows,
    EventTimeSettings,
    Global,
    Join,
    Session,
    Sliding,
    State,
    Tumbling,
)

EVENT_TIME = ("tumbling_window", "hopping_window", "sliding_window", "session_window")
KEYED = "key_mapping: this.k"
JOIN = """\
input:
  broker:
    inputs:
      - label: orders
        stdin: {}
      - label: shipments
        file: { paths: [ shipments.jsonl ] }
"""


def buffer(yaml: str, more: str = "") -> Any:
    config = parse_config(f"{more}buffer:\n  {yaml}\n", env={})
    return build_context(config.resources).build(config.buffer)


@pytest.mark.parametrize(
    ("yaml", "window"),
    [
        ("tumbling_window: {size: 1h}", Tumbling(HOUR, HOUR)),
        ("tumbling_window: {size: 1h, offset: -15m}", Tumbling(HOUR, HOUR, -15 * MINUTE)),
        ("hopping_window: {size: 10m}", Tumbling(10 * MINUTE, 10 * MINUTE)),
        ("hopping_window: {size: 10m, every: 1m}", Tumbling(10 * MINUTE, MINUTE)),
        (
            "hopping_window: {size: 7d, every: 1d, offset: 6h, timezone: Europe/Berlin}",
            Tumbling(7 * DAY, DAY, 6 * HOUR, "Europe/Berlin"),
        ),
        ("sliding_window: {size: 1.5s, mode: Event}", Sliding(1500 * MILLISECOND, "event")),
        ("sliding_window: {size: 1ms, mode: kafka}", Sliding(MILLISECOND, "kafka")),
        (
            "sliding_window: {size: 1s, mode: event, delay: 2s, emit_every: 3s}",
            Sliding(SECOND, "event", 2 * SECOND, waits=True, emit_every=3 * SECOND),
        ),
        (
            "sliding_window: {size: 1s, mode: event, emit_at: event_time, emit_when: this.a}",
            Sliding(SECOND, "event", waits=True, conditional=True),
        ),
        (
            "sliding_window: {size: 1s, mode: event, closed: Right}",
            Sliding(SECOND, "event", closed="right"),
        ),
        ("count_window: {count: 5, emit_when: this.a}", Count(5, 5, conditional=True)),
        ("state_window: {begin_when: this.a}", State(single=True)),
        (
            "state_window: {begin_when: this.a, emit_when: this.b, end_of_input: flush}",
            State(end_of_input="flush"),
        ),
        ("session_window: {gap: 60s}", Session(MINUTE)),
        ("session_window: {gap: 1m, gap_mapping: this.gap}", Session(MINUTE, None, True)),
        ("session_window: {gap: 1m, gap_mapping: ' '}", Session(MINUTE)),
        (
            f"session_window: {{gap: 1m, {KEYED}, expected_keys: [1.0, a]}}",
            Session(MINUTE, expected=(b"1", b'"a"')),
        ),
        ("session_window: {gap: 10s, max_duration: 10s}", Session(10 * SECOND, 10 * SECOND)),
        (
            "session_window: {gap: 2s, max_duration: 1s, max_duration_origin: start}",
            Session(2 * SECOND, SECOND, max_duration_origin="start"),
        ),
        ("session_window: {gap: 2s, max_count: 5}", Session(2 * SECOND, max_count=5)),
        ("count_window: {count: 5}", Count(5, 5)),
        ("count_window: {count: 5, every: 5}", Count(5, 5)),
        ("count_window: {count: 5, every: 1}", Count(5, 1)),
        ("count_window: {count: 2, every: 3, min_count: 1}", Count(2, 3, 1)),
        (
            "count_window: {count: 5, every: 2, align: start, end_of_input: flush}",
            Count(5, 2, 0, "start", "flush"),
        ),
        ("global_window: {latest_by: root = this.id}", Global("root = this.id")),
        ("global_window: {latest_by: this.id, delete_when: this.d}", Global("this.id", "this.d")),
    ],
)
def test_a_window_has_the_settings_of_its_kind(yaml: str, window: Any) -> None:
    assert buffer(yaml).window == window


def test_windows_without_messages_have_settings_of_their_own() -> None:
    fields = "{emit: keys, keys: [a, 1.0, 1], fill: linear, for: 1d}"
    found = buffer(f"hopping_window: {{size: 1m, every: 30s, empty_windows: {fields}, {KEYED}}}")
    assert found.window.empty == EmptyWindows(DAY, "linear", False, (b'"a"', b"1"))
    assert found.settings.strategy == "keys"
    seen = buffer("tumbling_window: {size: 1m, empty_windows: {emit: keys_seen}}")
    assert seen.window.empty == EmptyWindows(1_000 * MINUTE)


@pytest.mark.parametrize(
    ("bounds", "before", "after"),
    [
        ("within: 1h", HOUR, HOUR),
        ("within: 0s", 0, 0),
        ("before: 0s, after: 1h", 0, HOUR),
        ("after: 1h", 0, HOUR),
        ("before: -1m, after: 1h", -MINUTE, HOUR),
        ("before: -1h, after: 1h", -HOUR, HOUR),
    ],
)
def test_a_join_has_bounds_both_ways(bounds: str, before: int, after: int) -> None:
    fields = "left: orders, right: shipments, key_mapping: root = this.id, type: OUTER"
    found = buffer(f"window_join: {{{fields}, {bounds}}}", JOIN)
    assert found.window == Join("orders", "shipments", before, after, "outer")
    assert found.time == EventTimeSettings()
    assert (found.timestamp.text, found.key.text) == ("root = now()", "root = this.id")


def test_a_join_takes_a_clock_and_an_idle_timeout() -> None:
    fields = "left: orders, right: shipments, within: 1h, clock: System, idle_timeout: 2h"
    found = buffer(f"window_join: {{{fields}}}", JOIN)
    assert found.time == EventTimeSettings(clock="system", idle_timeout=2 * HOUR)
    with pytest.raises(ConfigError, match="idle_timeout is 0s, but it must be longer than 0s"):
        buffer(f"window_join: {{{fields.replace('2h', '0s')}}}", JOIN)


def test_a_field_that_others_have_is_told_what_there_is_instead() -> None:
    fields = "left: orders, right: shipments, within: 1h"
    with pytest.raises(ConfigError, match="field emit not recognised; pairs always come out"):
        buffer(f"window_join: {{{fields}, emit: each}}", JOIN)


def test_a_mapping_in_the_place_of_a_duration_is_told_that_it_is_none() -> None:
    with pytest.raises(ConfigError, match="takes no mapping; gap_mapping takes one"):
        buffer("session_window: {gap: root = this.gap}")
    with pytest.raises(ConfigError, match="size is the same for all messages, and takes no map"):
        buffer("tumbling_window: {size: root = this.size}")


@pytest.mark.parametrize("name", EVENT_TIME)
def test_the_defaults_are_those_that_the_kinds_share(name: str) -> None:
    own = {"sliding_window": "size: 1m, mode: forward", "session_window": "gap: 1m"}
    found = buffer(f"{name}: {{{own.get(name, 'size: 1m')}}}")
    assert isinstance(found, WindowBuffer)
    assert found.time == EventTimeSettings(
        clock="stream",
        clock_scope="stream",
        key_retention=7 * DAY,
        allowed_lateness=0,
        max_ahead=None,
        idle_timeout=None,
        emit="final",
        retention=None,
        end_of_input="flush",
    )
    assert found.timestamp is not None
    assert found.timestamp.text == "root = now()"
    assert (found.key, found.filter, found.having, found.late_output) == (None,) * 4


def test_every_shared_field_reaches_the_kernel() -> None:
    found = buffer(
        "tumbling_window: {size: 1m, timestamp_mapping: root = this.at, key_mapping: this.k, "
        "clock_scope: KEY, key_retention: 1h, allowed_lateness: 2s, max_ahead: 0s, "
        "idle_timeout: 5m, filter: this.n > 1, emit: Each, having: batch_size() > 3, "
        "late_output: lost, retention: 1d, end_of_input: keep}",
        "output_resources: [{label: lost, drop: {}}]\n",
    )
    assert found.time == EventTimeSettings(
        clock_scope="key",
        key_retention=HOUR,
        allowed_lateness=2 * SECOND,
        max_ahead=0,
        idle_timeout=5 * MINUTE,
        emit="each",
        retention=DAY,
        end_of_input="keep",
    )
    mappings = (found.timestamp, found.key, found.filter, found.having)
    texts = ["root = this.at", "this.k", "this.n > 1", "batch_size() > 3"]
    assert [mapping.text for mapping in mappings] == texts
    assert found.late_output == "lost"
    assert buffer("tumbling_window: {size: 1m, clock: system}").time == EventTimeSettings(
        clock="system"
    )


def test_a_count_window_knows_no_time() -> None:
    found = buffer("count_window: {count: 3, key_mapping: this.k, filter: this.n > 1}")
    assert (found.time, found.timestamp, found.having) == (None, None, None)
    assert (found.key.text, found.filter.text) == ("this.k", "this.n > 1")


def test_empty_mappings_are_none() -> None:
    found = buffer("session_window: {gap: 1m, key_mapping: '', filter: ' ', having: ''}")
    assert (found.key, found.filter, found.having) == (None, None, None)


@pytest.mark.parametrize(
    ("yaml", "text"),
    [
        ("tumbling_window: {size: ''}", "size is empty, but a window needs a length"),
        ("tumbling_window: {size: -1h}", "size is -1h, but a window needs a length"),
        ("tumbling_window: {size: 1h, offset: 1h}", "must be within the window's size, 1h"),
        ("hopping_window: {size: 1h, every: -1m}", "every is -1m, but it must be longer than 0s"),
        ("hopping_window: {size: 1h, every: 61m}", "must not be longer than the window's size, 1h"),
        ("hopping_window: {size: 1h, every: 1m, offset: -1m}", "must be within every, 1m"),
        ("tumbling_window: {size: 25h, timezone: UTC}", "with a timezone it must be whole days"),
        ("tumbling_window: {size: 1d, timezone: europe/berlin}", "did you mean Europe/Berlin"),
        ("tumbling_window: {size: 1d, timezone: localtime}", "is no time zone"),
        ("tumbling_window: {size: 1m, empty_windows: {emit: keys}}", "but keys is empty"),
        ("tumbling_window: {size: 1m, empty_windows: {for: 1h}}", "for has no meaning without"),
        ("tumbling_window: {size: 1m, empty_windows: {emit: keys, keys: [a]}}", "add key_mapping"),
        (
            "tumbling_window: {size: 1s, empty_windows: {emit: keys_seen, for: 7d}}",
            "604,800 windows of a key that is silent; 100,000 are the most",
        ),
        (
            "tumbling_window: {size: 1s, emit: each, empty_windows: {emit: keys_seen}}",
            "known to be empty only when they close",
        ),
        (
            "tumbling_window: {size: 1s, idle_timeout: 1s, empty_windows: {emit: keys_seen}}",
            "idle_timeout cannot stand beside empty_windows",
        ),
        ("tumbling_window: {size: 1s, emit_empty: true}", "emitted by `empty_windows"),
        ("sliding_window: {size: 0s, mode: event}", "size is 0s, but a window needs"),
        ("sliding_window: {size: 1us, mode: kafka}", "size is 1us, but with mode: kafka"),
        ("sliding_window: {size: 1m, mode: kafka, emit: forward}", "emit cannot be forward"),
        ("sliding_window: {size: 1m, mode: event, emit: each}", "leave it out"),
        ("sliding_window: {size: 1m, mode: event, delay: -1s}", "cannot end in the past"),
        ("sliding_window: {size: 1m, mode: event, closed: left}", "use right or both"),
        ("sliding_window: {size: 1m, mode: event, closed: neither}", "its own message"),
        ("sliding_window: {size: 1m, mode: kafka, closed: right}", "both bounds belong to windows"),
        ("sliding_window: {size: 1m, mode: event, emit_every: 0s}", "must be longer than 0s"),
        ("sliding_window: {size: 1m, mode: event, idle_timeout: 5s}", "where no window waits"),
        (
            "sliding_window: {size: 1m, mode: kafka, delay: 1s}",
            "has no meaning without mode: event",
        ),
        ("sliding_window: {size: 1m, mode: forward, emit_when: this.a}", "or use that mode"),
        (
            "sliding_window: {size: 1m, mode: forward, emit_at: event_time}",
            "only with mode: event a message emits a window",
        ),
        (
            "sliding_window: {size: 1m, mode: event, emit_when: batch_index() == 0}",
            "looks at other messages",
        ),
        (
            "count_window: {count: 2, align: start, emit_when: this.a}",
            "emit_when has no meaning with align: start",
        ),
        ('state_window: {begin_when: ""}', "a window begins with a message for which it is true"),
        ("state_window: {begin_when: random_int() == 1}", "leaves the condition to chance"),
        (
            "session_window: {gap: 1m, emit_also: [retractions]}",
            "retractions have no meaning with emit: final",
        ),
        (
            "tumbling_window: {size: 1m, emit: changes, emit_also: [retractions]}",
            "retractions have no meaning without having",
        ),
        (
            "session_window: {gap: 1m, emit: each, emit_also: [retractions], retention: 1d}",
            "retention cannot stand beside emit_also: retractions",
        ),
        ("session_window: {gap: -1s}", "gap is -1s, but a session needs a gap above 0s"),
        ("session_window: {gap: 2m, max_duration: 1m}", "must not be shorter than the gap, 2m"),
        (
            "session_window: {gap: 2m, max_duration_origin: start}",
            "max_duration_origin is start, but there is no max_duration",
        ),
        (
            "session_window: {gap: 2m, max_duration: 0s, max_duration_origin: start}",
            "max_duration is 0s, but a session lasts longer",
        ),
        ("session_window: {gap: 2m, max_count: 0}", "max_count is 0; expected a number"),
        (
            "session_window: {gap: 2m, max_count: 5, gap_mapping: root = this.gap}",
            "max_count is not possible with gap_mapping",
        ),
        (
            "count_window: {count: 2, every: 3, align: start}",
            "every is 3, but with align: start it must not be more than count, 2",
        ),
        ("count_window: {count: 2, min_count: 3}", "min_count is 3, but a window has at most 2"),
        (
            "count_window: {count: 2, min_count: 1, align: start}",
            "min_count has no meaning with align: start",
        ),
        ("count_window: {count: 2, every: 0}", "every is 0; expected a number of messages"),
        ("count_window: {count: 2, key_mapping: root = ksuid()}", "leaves the key to chance"),
        ("session_window: {gap: 1s, key_mapping: counter()}", "looks at other messages"),
        ("session_window: {gap: 1s, expected_keys: [a]}", "expected_keys are listed, but messages"),
        ("session_window: {gap: 1s, gap_mapping: random_int()}", "leaves the gap to chance"),
        ("session_window: {gap: 1s, clock_scope: key}", "clock_scope is key, but messages have no"),
        ("session_window: {gap: 1s, emit: forward, having: this.a}", "having cannot judge"),
        ("tumbling_window: {size: 1m, emit: forward, emit_also: [on_time]}", "has no meaning with"),
        ("tumbling_window: {size: 1m, emit_also: [close]}", "close is what emit: final does"),
        ("tumbling_window: {size: 1m, emit: each, emit_also: [start]}", "emit_also"),
        ("sliding_window: {size: 1s, mode: event, emit_also: [close]}", "where no window closes"),
        ("global_window: {idle_timeout: 0s, latest_by: this.id}", "leave it out to keep every key"),
        ("global_window: {delete_when: this.d}", "delete_when has no meaning without latest_by"),
        ("global_window: {order: event_time}", "no message is kept that could be sorted"),
        (
            "global_window: {order: event_time, latest_by: this.id, delete_when: this.d}",
            "would bring it back; use order: arrival",
        ),
        ("global_window: {}", "there is no mapping that makes one message of many"),
    ],
)
def test_settings_that_cannot_work_are_refused(yaml: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        buffer(yaml)


def test_what_is_just_allowed_is_not_refused() -> None:
    buffer("hopping_window: {size: 1h, every: 1h, offset: 59m}")
    buffer("sliding_window: {size: 1ns, mode: forward, emit: each}")
    buffer("session_window: {gap: 1m, max_duration: 1m, emit: forward}")
    buffer("tumbling_window: {size: 1m, emit: changes, having: batch_size() > 3}")


@pytest.mark.parametrize("name", EVENT_TIME)
def test_the_kinds_share_their_fields(name: str) -> None:
    shared = {"timestamp_mapping", "key_mapping", *EventTimeSettings.__dataclass_fields__}
    shared |= {"filter", "having", "late_output"}
    spec = catalog.find_spec(Kind.BUFFER, name)
    assert spec is not None
    assert shared < {field.name for field in spec.fields}
