"""Timelines of buffers that take the results of others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.engine.offline.arrival_clock import ArrivalTimes
from streamer.plan import make_plan
from streamer.tools.timeline.model import Timeline
from streamer.tools.timeline.simulate_results import simulate_buffer
from streamer.tools.timeline.svg import draw_timeline
from streamer.tools.timeline.text import format_timeline

HOUR = 3600 * 10**9
CONFIG = """
input: { stdin: {} }
buffers:
  - label: hourly
    tumbling_window:
      timestamp_mapping: root = this.at
      key_mapping: root = this.shop
      size: 1h
    pipeline:
      processors:
        - mapping: |
            root = if batch_index() == 0 {
              { "shop": this.shop, "orders": batch_size() }
            } else { deleted() }
  - label: daily
    from: hourly
    tumbling_window: { size: 24h }
    pipeline: { processors: [ { mapping: 'root = deleted()' } ] }
output: { drop: {} }
"""


def timeline(label: str, *messages: tuple[float, str], config: str = CONFIG) -> Timeline:
    plan = make_plan(parse_config(config, "totals.yaml"))
    sent = [{"at": hours * 3600, "shop": shop} for hours, shop in messages]
    sample = [[Message(json.dumps(one).encode())] for one in sent]
    return simulate_buffer(plan, label, sample, ArrivalTimes(), lambda: 0)


SENT = ((1.5, "a"), (1.6, "b"), (1.7, "a"), (3.0, "a"), (30.0, "a"), (60.0, "a"))


def test_its_messages_are_the_results_of_the_buffer_before_it() -> None:
    found = timeline("daily", *SENT)
    contents = [json.loads(event.text) for event in found.events]
    assert contents[:3] == [
        {"shop": "a", "orders": 2},
        {"shop": "b", "orders": 1},
        {"shop": "a", "orders": 1},
    ]
    times: list[Any] = [None if one.time is None else one.time + 1 for one in found.events]
    assert times == [2 * HOUR, 2 * HOUR, 4 * HOUR, 31 * HOUR, 61 * HOUR]
    # They arrive when their windows close.
    assert [event.arrived for event in found.events[:3]] == [3 * HOUR, 3 * HOUR, 30 * HOUR]
    assert [(one.start, one.end, one.numbers, one.key) for one in found.spans] == [
        (0, 24 * HOUR, [1, 2, 3], None),
        (24 * HOUR, 48 * HOUR, [4], None),
        (48 * HOUR, 72 * HOUR, [5], None),
    ]
    # A day closes with the last hour in it, as soon as no other can come.
    assert found.spans[0].closed == 30 * HOUR
    text = format_timeline(found, lambda text, what: text, 180)
    assert '{"orders":2,"shop":"a"}' in text and "3 messages: #1-#3" in text
    assert draw_timeline(found).startswith("<svg")


def test_without_a_label_the_first_buffer_is_shown_and_a_wrong_one_is_refused() -> None:
    found = timeline("", *SENT)
    assert len(found.events) == len(SENT) and {span.key for span in found.spans} == {"a", "b"}
    with pytest.raises(StreamerError, match="no buffer 'weekly'; its buffers are hourly, daily"):
        timeline("weekly", *SENT)


def test_a_result_that_comes_too_late_is_shown_as_dropped() -> None:
    late = CONFIG.replace("{ size: 24h }", "{ size: 1h, clock: system }")
    late = late.replace("      size: 1h", "      size: 1h\n      allowed_lateness: 30m")
    # The system clock has passed two when the result of the hour before comes.
    found = timeline("daily", (1.5, "a"), (2.1, "a"), (3.0, "a"), config=late)
    assert found.events[0].dropped == "late"
    assert "its last window had closed" in found.events[0].why
