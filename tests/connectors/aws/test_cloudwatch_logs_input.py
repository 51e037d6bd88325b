"""The input `aws_cloudwatch_logs`: each event once, with a simulated CloudWatch Logs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.aws import log_events
from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.connectors.aws.log_events import OVERLAP_MS, EventWindow
from streamer.connectors.aws.log_session import first_start_ms
from streamer.core.errors import ConfigError
from tests.components.inputs.landing import receiving
from tests.components.inputs.reading import built
from tests.servers.aws import Aws


def put(aws: Aws, group: str, stream: str, texts: list[str], time_ms: int) -> None:
    """Send events, one in each millisecond."""
    events = [{"timestamp": time_ms + n, "message": text} for n, text in enumerate(texts)]
    aws.client("logs").put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)


def make_group(aws: Aws, group: str, *streams: str) -> None:
    client = aws.client("logs")
    client.create_log_group(logGroupName=group)
    for stream in streams:
        client.create_log_stream(logGroupName=group, logStreamName=stream)


def config_of(aws: Aws, group: str, fields: str = "") -> str:
    return (
        f"aws_cloudwatch_logs: {{log_group_name: {group}, poll_interval: 50ms, {fields} "
        f"{aws.fields}}}"
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.slow
class TestGroup:
    def test_two_thousand_events_are_read_once_over_two_starts(
        self, aws: Aws, tmp_path: Path
    ) -> None:
        make_group(aws, "read", "a", "b")
        began = now_ms() - 60_000
        put(aws, "read", "a", [f"{n}" for n in range(600)], began)
        put(aws, "read", "b", [f"{n}" for n in range(600, 1_200)], began)
        config = config_of(aws, "read", "limit: 500, structured_log: false,")
        with receiving(tmp_path, config) as taken:
            assert sorted(map(int, taken.raws(1_200))) == list(range(1_200))
        # Those of `b` are older than what has been read, but not much.
        put(aws, "read", "a", [f"{n}" for n in range(1_200, 1_600)], began + 700)
        put(aws, "read", "b", [f"{n}" for n in range(1_600, 2_000)], began - 1_000)
        with receiving(tmp_path, config) as taken:
            assert sorted(map(int, taken.raws(2_000))) == list(range(2_000))
            put(aws, "read", "a", ["2000"], began + 2_000)
            assert taken.raws(2_001)[-1] == "2000"
        assert len(taken.messages) == 2_001
        meta = dict(taken.messages[-1].meta)
        assert meta.pop("cloudwatch_event_id") and int(meta.pop("cloudwatch_ingestion_time"))
        assert meta == {
            "cloudwatch_log_group": "read",
            "cloudwatch_log_stream": "a",
            "cloudwatch_timestamp": f"{began + 2_000}",
        }

    def test_a_group_from_now_on_by_its_streams_and_its_pattern(
        self, aws: Aws, tmp_path: Path
    ) -> None:
        make_group(aws, "late", "a", "b")
        put(aws, "late", "a", ["ERROR before"], now_ms() - 60_000)
        config = config_of(
            aws, "late", "start_time: now, log_stream_names: [a], filter_pattern: ERROR,"
        )
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_up")
        put(aws, "late", "b", ["ERROR elsewhere"], now_ms())
        put(aws, "late", "a", ["INFO"], now_ms())
        put(aws, "late", "a", ["ERROR \x00 <é>"], now_ms())
        with receiving(tmp_path, config) as taken:
            (raw,) = taken.raws(1)
        event = json.loads(raw)
        assert event["message"] == "ERROR \x00 <é>"
        assert (event["log_group"], event["log_stream"]) == ("late", "a")
        assert event["event_id"] and event["timestamp"] <= event["ingestion_time"]

    def test_a_group_that_is_not_there(self, aws: Aws, tmp_path: Path) -> None:
        make_group(aws, "elsewhere", "a")
        config = config_of(aws, "elsewhere").replace("eu-west-1", "us-east-2")
        with pytest.raises(AwsError, match="log group does not exist"):
            built(f"input: {{{config}}}").probe()
        with receiving(tmp_path, config) as taken:
            taken.counted("input_connection_failed", 2)


def event(number: int, time_ms: int) -> dict[str, Any]:
    return {"eventId": f"{number}", "timestamp": time_ms, "logStreamName": "a"}


class TestWindow:
    def test_it_goes_on_from_what_was_saved(self) -> None:
        window = EventWindow(0)
        events = [event(n, 100_000 + n // 2) for n in range(10)]
        assert window.take(events[:6], 10**9) == events[:6]
        loaded = EventWindow.load(window.save())
        assert loaded.start_ms == 100_002 - OVERLAP_MS
        assert loaded.take(events, 10**9) == events[6:]

    def test_events_that_are_too_old_are_forgotten_and_not_asked_for(self) -> None:
        window = EventWindow(0)
        window.take([event(0, 100), event(1, 100 + OVERLAP_MS)], 10**9)
        assert window.start_ms == 100 and len(window.save()["read"]) == 2
        window.take([event(2, 101 + OVERLAP_MS)], 10**9)
        assert window.start_ms == 101 and len(window.save()["read"]) == 2

    def test_an_event_of_the_future_does_not_hide_those_of_the_present(self) -> None:
        window = EventWindow(0)
        window.take([event(0, 9_000_000)], 1_000_000)
        assert window.start_ms == 1_000_000 - OVERLAP_MS

    def test_more_events_than_it_remembers_shorten_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log_events, "MAX_EVENTS", 3)
        window = EventWindow(0)
        window.take([event(n, 50_000 + n) for n in range(5)], 10**9)
        assert window.start_ms == 50_002
        assert [time_ms for time_ms, _ in window.save()["read"]] == [50_002, 50_003, 50_004]
        many = [event(n, 60_000) for n in range(9)]
        assert window.take(many, 10**9) == many
        assert window.start_ms == 50_005 and window.take(many, 10**9) == []


class _Logs:
    """A group whose second page is refused at first, and whose events lack parts."""

    def __init__(self) -> None:
        self.codes = ["ThrottlingException", "InvalidParameterException"]
        self.given: list[dict[str, Any]] = []

    def filter_log_events(self, **given: Any) -> Any:
        self.given.append(given)
        if given.get("nextToken") is None:
            return {"events": [{"message": "a"}, {"eventId": "1"}], "nextToken": "t"}
        if self.codes:
            raise AwsError("no", self.codes.pop(0))
        return {"events": [{"message": "c", "eventId": "2", "timestamp": 7}]}

    def close(self) -> None:
        pass


def test_a_page_that_is_refused_is_asked_for_again_and_nothing_is_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = _Logs()
    monkeypatch.setattr(AwsClient, "run", lambda self, work: work(service))
    config = (
        "aws_cloudwatch_logs: {log_group_name: g, log_stream_prefix: p, limit: 7, "
        "poll_interval: 1ms, structured_log: false}"
    )
    with receiving(tmp_path, config) as taken:
        assert taken.raws(3) == ["a", "", "c"]
        taken.counted("input_connection_lost")
        asked = len(service.given)
        taken.until(lambda _: len(service.given) > asked + 4)
    assert len(taken.messages) == 3
    first = {"logGroupName": "g", "logStreamNamePrefix": "p", "limit": 7, "startTime": 0}
    tokens = [one.pop("nextToken", None) for one in service.given]
    assert tokens[:5] == [None, "t", "t", None, "t"]
    assert all(one == first for one in service.given)


def test_times_to_begin_at() -> None:
    assert first_start_ms("", 5) == 0
    assert first_start_ms(" now ", 5) == 5
    assert first_start_ms("1970-01-01T00:00:01.5Z", 5) == 1_500
    assert first_start_ms("1969-01-01T00:00:00Z", 5) == 0


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("limit: 0", "is 0; expected 1 to 10000"),
        ("limit: 10001", "is 10001; expected 1 to 10000"),
        ("start_time: yesterday", "expected now, or a time such as 2024-01-01T00:00:00Z"),
        ("log_stream_names: [a], log_stream_prefix: b", "cannot stand beside log_stream_names"),
        ("poll_interval: 0s", "expected more than 0s"),
        (f"log_stream_names: {list('x' * 101)}", "has 101 names; expected at most 100"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(fields: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(f"input: {{aws_cloudwatch_logs: {{log_group_name: g, {fields}}}}}")
