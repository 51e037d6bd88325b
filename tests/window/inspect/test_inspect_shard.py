"""The open windows of a shard, as people see them, for each kind of window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from streamer.config.load import parse_config
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import make_plan
from streamer.window.inspect.window_query import (
    MAX_ROWS,
    USUAL_QUERY,
    WINDOW_QUERIES,
    WindowListing,
    WindowQuery,
    WindowRow,
)

TIMES = "timestamp_mapping: root = this.t"
KEYED = f"{TIMES}, key_mapping: root = this.k"
AGGREGATED = """
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          { "k": this.k, "sum": json("v").from_all().sum() }
        } else { deleted() }
"""
SENT = [(10, "a", 1), (11, "b", 2), (12, "a", 3)]
ALL = WindowQuery(limit=MAX_ROWS)


@pytest.fixture(autouse=True)
def _forget_queries() -> Iterator[None]:
    token = WINDOW_QUERIES.set(())
    yield
    WINDOW_QUERIES.reset(token)


def status(
    buffer: str, rest: str = "", queries: tuple[WindowQuery, ...] = (), sent: Any = SENT
) -> Any:
    """The status of the only shard, after a micro-batch with messages and one without."""
    WINDOW_QUERIES.set(queries)
    stream = ScriptedStream(make_plan(parse_config(f"buffer: {{ {buffer} }}\n{rest}")))
    messages = [Message.from_value({"t": t, "k": k, "v": v}) for t, k, v in sent]
    stream.run_micro_batch(100 * SECOND, map(ScriptedMessage, messages))
    stream.run_micro_batch(101 * SECOND)
    return stream._delivery.statuses[0]


def rows(fields: Any) -> list[tuple[Any, ...]]:
    """Key, start and end in seconds, and messages, of a listing that is complete."""
    listing = WindowListing.from_dict(fields)
    assert listing.is_complete and listing.total == len(listing.rows)
    return [
        (row.key, *(at if at is None else at / SECOND for at in (row.start, row.end)), row.messages)
        for row in listing.rows
    ]


KINDS = [
    (f"session_window: {{ {KEYED}, gap: 5s }}", [("a", 10, 12, 2), ("b", 11, 11, 1)]),
    (f"session_window: {{ {TIMES}, gap: 5s }}", [(None, 10, 12, 3)]),
    (
        f"sliding_window: {{ {KEYED}, size: 5s, mode: forward }}",
        [("a", 10, 15, 2), ("b", 11, 16, 1), ("a", 12, 17, 1)],
    ),
    (
        f"sliding_window: {{ {KEYED}, size: 5s, mode: event }}",
        [("b", 6, 11, None), ("a", 7, 12, None)],
    ),
    (
        f"hopping_window: {{ {KEYED}, size: 10s, every: 5s, emit: changes }}",
        [("a", 5, 15, 2), ("b", 5, 15, 1), ("a", 10, 20, 2), ("b", 10, 20, 1)],
    ),
    (
        "count_window: { key_mapping: root = this.k, count: 3 }",
        [("a", None, None, 2), ("b", None, None, 1)],
    ),
    (
        "global_window: { key_mapping: root = this.k, latest_by: root = this.v }",
        [("a", None, None, 2), ("b", None, None, 1)],
    ),
]


@pytest.mark.parametrize(("buffer", "expected"), KINDS)
def test_windows_of_keys_are_in_each_report_and_asked_for_the_same(
    buffer: str, expected: list[Any]
) -> None:
    said = status(buffer, queries=(ALL,))
    assert rows(said["listing"]) == expected
    assert rows(said["answers"][ALL.to_json()]) == expected


@pytest.mark.parametrize(
    "settings", ["gap: 5s", "gap: 5s, max_duration: 1h", "gap: 5s, max_count: 9"]
)
def test_aggregated_sessions_are_the_same_as_columns_and_as_records(settings: str) -> None:
    said = status(f"session_window: {{ {KEYED}, {settings} }}", AGGREGATED)
    assert rows(said["listing"]) == [("a", 10, 12, 2), ("b", 11, 11, 1)]


def row(fields: Any, key: str | None = "a") -> WindowRow:
    return next(one for one in WindowListing.from_dict(fields).rows if one.key == key)


def test_it_is_said_when_and_why_a_window_closes() -> None:
    one = row(status(f"session_window: {{ {KEYED}, gap: 5s, idle_timeout: 1m }}")["listing"])
    assert (one.closes, one.closes_by) == (17 * SECOND + 1, "event_time")
    assert one.idle_at == 160 * SECOND  # The last message came at 100.
    keys = f"session_window: {{ {KEYED}, gap: 5s, clock_scope: key }}"
    assert row(status(keys)["listing"]).closes_by == "key_time"
    clock = f"session_window: {{ {KEYED}, gap: 5s, clock: system }}"
    late = [(100, "a", 1)]
    assert row(status(clock, sent=late)["listing"]).closes_by == "clock"
    counted = row(status("count_window: { key_mapping: root = this.k, count: 3 }")["listing"])
    assert (counted.closes, counted.closes_by, counted.missing) == (None, "count", 1)
    never = row(status("global_window: { key_mapping: root = this.k }", AGGREGATED)["listing"])
    assert (never.closes, never.closes_by) == (None, "never")


@pytest.mark.parametrize("kind", ["tumbling_window: { size: 10s, ", "session_window: { gap: 5s, "])
def test_a_key_is_found_by_a_part_and_as_a_whole(kind: str) -> None:
    sent = [(10, "berlin", 1), (11, "bern", 2), (12, "1", 3), (13, 1, 4)]
    part, whole = WindowQuery(key="ber"), WindowQuery(key="bern", only_key=True)
    number = WindowQuery(key="1", only_key=True)
    answers = status(f"{kind}{KEYED} }}", queries=(part, whole, number), sent=sent)["answers"]

    def keys(query: WindowQuery) -> list[str | None]:
        return [one.key for one in WindowListing.from_dict(answers[query.to_json()]).rows]

    assert keys(part) == ["berlin", "bern"]
    assert keys(whole) == ["bern"]
    # A text and a number that are spelt alike are two keys.
    assert keys(number) == ["1", "1"]


def test_the_largest_and_the_oldest_come_first_and_no_more_than_asked_for() -> None:
    sent = [(10 + n, f"k{n}", n) for n in range(9)] + [(18, "k4", 1), (18, "k4", 1), (18, "k7", 1)]
    size, age = WindowQuery(by="size", limit=2), WindowQuery(by="age", limit=2)
    close = WindowQuery(by="close", limit=2)
    said = status(f"session_window: {{ {KEYED}, gap: 90s }}", queries=(size, age, close), sent=sent)
    answers = {text: WindowListing.from_dict(one) for text, one in said["answers"].items()}
    assert [one.key for one in answers[size.to_json()].rows] == ["k4", "k7"]
    assert [one.key for one in answers[age.to_json()].rows] == ["k0", "k1"]
    assert [one.key for one in answers[close.to_json()].rows] == ["k0", "k1"]
    assert answers[size.to_json()].total == 9


def test_count_windows_that_are_being_filled_are_counted_by_their_keys() -> None:
    kind = "count_window: { key_mapping: root = this.k, count: 9 }"
    assert status(kind)["open_windows"] == 2
    many = USUAL_QUERY.max_keys + 1
    said = status(kind, sent=[(10, f"k{n}", n) for n in range(many)])
    assert said["open_windows"] == many and not said["listing"]["complete"]
    full = status(kind, sent=[(10, "a", n) for n in range(9)])
    assert full["open_windows"] == 0


def test_very_many_keys_are_not_looked_through_unless_somebody_asks() -> None:
    many = USUAL_QUERY.max_keys + 1
    sent = [(10, f"k{n}", n) for n in range(many)]
    exact = WindowQuery(key=f"k{many - 1}", only_key=True)
    few = WindowQuery(max_keys=100)
    said = status(f"session_window: {{ {KEYED}, gap: 5s }}", queries=(exact, few), sent=sent)
    assert "listing" not in said and said["open_windows"] == many
    assert rows(said["answers"][exact.to_json()]) == [(f"k{many - 1}", 10, 10, 1)]
    listing = WindowListing.from_dict(said["answers"][few.to_json()])
    assert not listing.is_complete and listing.total == 100


def content(buffer: str, rest: str, query: WindowQuery, sent: Any = SENT) -> Any:
    said = status(buffer, rest, (query,), sent)
    (found,) = said["answers"][query.to_json()]["contents"]
    return found


BUFFERS = [
    f"session_window: {{ {KEYED}, gap: 5s }}",
    f"session_window: {{ {KEYED}, gap: 5s, max_duration: 1h }}",
    f"tumbling_window: {{ {KEYED}, size: 10s }}",
    f"tumbling_window: {{ {KEYED}, size: 10s, emit: changes }}",
]


@pytest.mark.parametrize("buffer", BUFFERS)
def test_a_look_into_a_window_shows_its_last_messages_or_its_result_so_far(buffer: str) -> None:
    query = WindowQuery(key="a", only_key=True, has_content=True)
    found = content(buffer, "", query, [*SENT, *((12, "a", n) for n in range(4, 9))])
    assert found["messages"] == 7
    assert [one["content"] for one in found["last"]] == [
        f'{{"k":"a","t":12,"v":{n}}}' for n in range(4, 9)
    ]
    aggregated = content(buffer, AGGREGATED, query)
    assert aggregated["result"]["content"] == '{"k":"a","sum":4}'
    assert aggregated["messages"] == 2 and "last" not in aggregated


def test_a_look_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    query = WindowQuery(key="a", only_key=True, has_content=True)
    for buffer in BUFFERS:
        for rest in ("", AGGREGATED):
            WINDOW_QUERIES.set((query,))
            plan = make_plan(parse_config(f"buffer: {{ {buffer} }}\n{rest}"))
            looked_at, other = ScriptedStream(plan), ScriptedStream(plan)
            messages = [Message.from_value({"t": t, "k": k, "v": v}) for t, k, v in SENT]
            looked_at.run_micro_batch(100 * SECOND, map(ScriptedMessage, messages))
            WINDOW_QUERIES.set(())
            other.run_micro_batch(100 * SECOND, map(ScriptedMessage, messages))
            assert looked_at.stores[0].values == other.stores[0].values


def test_a_mapping_that_fails_says_so_and_the_stream_goes_on() -> None:
    fails = AGGREGATED.replace('json("v").from_all().sum()', 'json("k").from_all().sum()')
    query = WindowQuery(key="a", only_key=True, has_content=True)
    found = content(BUFFERS[0], fails, query)
    assert "expected number" in found["result"]["error"]


def test_windows_of_groups_are_found_by_the_group() -> None:
    grouped = "pipeline: { processors: [ { group_by_value: { value: '${! this.k }' } } ] }"
    query = WindowQuery(key="a", only_key=True)
    said = status(f"tumbling_window: {{ {TIMES}, size: 10s }}", grouped, (query,))
    assert rows(said["answers"][query.to_json()]) == [("a", 10, 20, 2)]


def test_messages_that_wait_in_a_join_are_listed_by_side_and_key() -> None:
    join = """
      window_join:
        left: l
        right: r
        timestamp_mapping: root = this.t
        key_mapping: root = this.k
        within: 10s
    """
    inputs = "input: { broker: { inputs: [ { label: l, stdin: {} }, { label: r, stdin: {} } ] } }"
    stream = ScriptedStream(make_plan(parse_config(f"{inputs}\nbuffer:{join}")))
    sent = [("l", 10, "a"), ("l", 12, "a"), ("r", 3, "b")]
    stream.run_micro_batch(
        100 * SECOND,
        [ScriptedMessage(Message.from_value({"t": t, "k": k}), 0, side) for side, t, k in sent],
    )
    listing = WindowListing.from_dict(stream._delivery.statuses[0]["listing"])
    assert [(one.side, one.key, one.messages) for one in listing.rows] == [
        ("right", "b", 1),
        ("left", "a", 2),
    ]
    assert listing.rows[1].closes is not None


def test_a_late_message_is_sampled_with_its_key_and_time() -> None:
    for buffer in BUFFERS:
        stream = ScriptedStream(make_plan(parse_config(f"buffer: {{ {buffer} }}")))
        for second in (100, 10):
            message = Message.from_value({"t": second, "k": "a"})
            stream.run_micro_batch(200 * SECOND, [ScriptedMessage(message)])
        (line,) = stream._delivery.statuses[0]["log"]
        assert line["fields"]["reason"] == "late"
        assert line["sample"]["payload"] == '{"k":"a","t":10}'
        assert line["sample"]["key"] == "a"
