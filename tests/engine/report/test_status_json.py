"""Statuses of shards as JSON: times beyond 64 bits are shown at their end."""

from __future__ import annotations

import orjson

from streamer.core.value import INT64_MIN
from streamer.engine.report.status_json import encode_status


def test_a_status_is_json() -> None:
    status = {"now": 1, "closed": ({"end": INT64_MIN, "key": None},), "ended": False}
    expected = {"now": 1, "closed": [{"end": INT64_MIN, "key": None}], "ended": False}
    assert orjson.loads(encode_status(status)) == expected


def test_a_window_that_begins_before_all_times_is_shown_from_the_first_one_on() -> None:
    status = {"ended": True, "closed": ({"start": INT64_MIN - 10**10, "key": "k"},)}
    expected = {"ended": True, "closed": [{"start": INT64_MIN, "key": "k"}]}
    assert orjson.loads(encode_status(status)) == expected
