"""`splunk_hec`, with a stand-in for the collector."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from streamer.core.errors import ConfigError, StreamerError
from streamer.core.message import Message
from streamer.sdk.output.rejection import Reason, Rejection
from tests.servers.http import Asked, Reply, Server, http_server

from .scripted import Seen, built


class Collector:
    """What it has stored; it refuses blank events, unknown indexes and other tokens."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.busy = False

    def answer(self, asked: Asked) -> Reply:
        if asked.headers["authorization"] != "Splunk sesame":
            return _reply(403, "Invalid token", 4)
        body = asked.body
        if asked.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if self.busy:
            return _reply(503, "Server is busy", 9)
        if len(body) > 2_000_000:
            return Reply(413, b"<html>too large</html>")
        events = [json.loads(line) for line in body.splitlines()]
        if not events:
            return _reply(400, "No data", 5)
        if any(event["event"] == "" for event in events):
            return _reply(400, "Event field cannot be blank", 13)
        if any(event.get("index") == "nowhere" for event in events):
            return _reply(400, "Incorrect index", 7)
        self.events += events
        return _reply(200, "Success", 0)


def _reply(status: int, text: str, code: int) -> Reply:
    return Reply(status, json.dumps({"text": text, "code": code}).encode())


def send(server: Server, fields: str, *batch: Message) -> Any:
    config = f"splunk_hec: {{url: '{server.url}/services/collector', {fields}}}"
    [error] = built(config).deliver([[*batch]], Seen().ex).errors
    return error


@pytest.mark.parametrize("more", ["", ", gzip: true"])
def test_what_is_no_event_becomes_one(more: str) -> None:
    collector = Collector()
    batch = [
        Message(b'{"event": {"a": 1}, "time": 2, "host": "h"}'),
        Message(b'{"a": 1}'),
        Message(b"[1]"),
        Message(b"text\n"),
    ]
    fields = "token: sesame, event_host: me, event_source: s, event_sourcetype: t, event_index: i"
    with http_server(collector.answer) as server:
        assert send(server, fields + more, *batch) is None
        assert len(server.asked) == 1
    added = {"host": "me", "source": "s", "sourcetype": "t", "index": "i"}
    assert collector.events == [
        {"event": {"a": 1}, "time": 2, **added},
        *({"event": event, **added} for event in ({"a": 1}, [1], "text\n")),
    ]


def test_a_bad_event_is_rejected_alone() -> None:
    collector = Collector()
    values: list[Any] = [{"event": n} for n in range(9)]
    values[3], values[7] = {"event": ""}, {"event": 1, "index": "nowhere"}
    values[8] = {"event": "x" * 3_000_000}
    with http_server(collector.answer) as server:
        error = send(
            server, "token: sesame", *(Message(json.dumps(value).encode()) for value in values)
        )
    assert {index: text.reason for index, text in error.errors.items()} == {
        3: Reason.REFUSED,
        7: Reason.REFUSED,
        8: Reason.TOO_LARGE,
    }
    assert isinstance(error.errors[3], Rejection) and "cannot be blank" in error.errors[3]
    assert [event["event"] for event in collector.events] == [0, 1, 2, 4, 5, 6]


def test_what_is_wrong_with_all_events_blocks_them() -> None:
    collector = Collector()
    batch = [Message(b"a"), Message(b"b")]
    with http_server(collector.answer) as server:
        for fields, words in {
            "token: sesamo": "403: Invalid token",
            "token: sesame, event_index: nowhere": "400: Incorrect index",
        }.items():
            error = send(server, fields, *batch)
            assert words in str(error) and not error.is_rejected and not error.errors
            assert "sesam" not in str(error)
        collector.busy = True
        error = send(server, "token: sesame", *batch)
        assert "503: Server is busy" in str(error) and not error.is_rejected
    error = send(server, "token: sesame", *batch)
    assert not error.is_rejected and "refused" in str(error)
    assert collector.events == []


def test_the_token_is_tried() -> None:
    with http_server(Collector().answer) as server:
        config = f"splunk_hec: {{url: '{server.url}', token: %s}}"
        assert built(config % "sesame").probe() == "the collector answers"
        with pytest.raises(StreamerError, match="Invalid token"):
            built(config % "x").probe()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("url: 'host:8088', token: x", "no URL of HTTP; expected one such as https://"),
        ("url: 'http://a', token: x, batching_count: 3", "batching_count"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(fields: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(f"output: {{splunk_hec: {{{fields}}}}}\n")
