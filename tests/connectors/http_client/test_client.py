"""What a client makes of answers, and how it gets to servers."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.multipart import (
    parse_content_type,
    read_multipart,
    write_multipart,
)
from streamer.connectors.http_client.request import RequestMaker
from streamer.core.execution import Execution
from streamer.core.message import Message
from tests.components.outputs.scripted import Seen
from tests.connectors.http_client.client import client
from tests.servers.http import Reply, http_server

A = [Message(b"a")]


def test_an_answer_is_a_message_with_its_code_and_chosen_headers():
    with http_server(lambda asked: Reply(201, b"made", {"X-A": "1", "X-B": "2"})) as server:
        asking = client(f"url: '{server.url}', extract_headers: {{include_patterns: ['^x-a$']}}")
        [message] = asking.messages_of(asking.send(A, Seen().ex))
    assert (message.raw, dict(message.meta)) == (b"made", {"http_status_code": 201, "x-a": "1"})


def test_an_answer_of_several_parts_is_several_messages():
    body, kind = write_multipart([([("X", "1")], b"one\r\n"), ([], b""), ([("Y", "2")], b"--two")])
    with http_server(lambda asked: Reply(200, body, {"Content-Type": kind})) as server:
        asking = client(f"url: '{server.url}'")
        messages = asking.messages_of(asking.send(A, Seen().ex))
    assert [message.raw for message in messages] == [b"one\r\n", b"", b"--two"]
    assert all(message.meta == {"http_status_code": 200} for message in messages)


def test_an_answer_that_is_said_to_have_parts_and_has_none_is_a_failure():
    kind = {"Content-Type": "multipart/mixed; boundary=x"}
    with http_server(lambda asked: Reply(200, b"no parts", kind)) as server:
        asking = client(f"url: '{server.url}'")
        with pytest.raises(HttpError, match="multipart: "):
            asking.messages_of(asking.send(A, Seen().ex))


def test_headers_of_parts_are_read_as_they_were_written():
    body, kind = write_multipart([([("b", "2"), ("a", "1\n2")], b"x")])
    boundary = parse_content_type(kind)[1]["boundary"]
    assert read_multipart(body, boundary) == [([("a", "1 2"), ("b", "2")], b"x")]
    # What stands before the first part, and blanks behind a boundary, are nobody's.
    loose = b"hello\r\n" + body.replace(boundary.encode() + b"\r\n", boundary.encode() + b" \r\n")
    assert read_multipart(loose, boundary) == [([("a", "1 2"), ("b", "2")], b"x")]


def test_a_body_can_be_read_as_it_comes():
    with (
        http_server(lambda asked: Reply(200, b"x" * 200_000)) as server,
        client(f"url: '{server.url}'").open(A, Seen().ex) as answer,
    ):
        assert b"".join(answer.iter_blocks()) == b"x" * 200_000


def test_an_error_has_what_the_server_said():
    with http_server(lambda asked: Reply(400, b"bad\nthing", {"X-A": "1"})) as server:
        with pytest.raises(HttpError) as raised:
            client(f"url: '{server.url}', retries: 0").send(A, Seen().ex)
        with (
            pytest.raises(HttpError) as opened,
            client(f"url: '{server.url}', retries: 0").open(A, Seen().ex),
        ):
            pass
    for error in (raised.value, opened.value):
        assert (error.status, error.body) == (400, b"bad\nthing")
        assert ("x-a", "1") in error.headers
        assert str(error) == (
            f"{server.url}: HTTP request returned unexpected response code (400): "
            "400 Bad Request, Error: badthing"
        )


def test_requests_go_through_a_proxy():
    with http_server(lambda asked: Reply(200, b"by proxy")) as proxy:
        asking = client(f"url: 'http://nowhere.invalid/x', proxy_url: '{proxy.url}'")
        assert asking.send(A, Seen().ex).body == b"by proxy"
    assert proxy.asked[0].path == "http://nowhere.invalid/x"


def test_a_proxy_of_the_environment_is_not_for_the_own_machine(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with http_server() as server:
        assert client(f"url: '{server.url}'").send(A, Seen().ex).status == 200


def test_the_password_of_a_url_is_in_no_error():
    with pytest.raises(HttpError) as raised:
        client("url: 'http://u:wordpass@127.0.0.1:1/x', retries: 0").send(A, Seen().ex)
    assert "wordpass" not in str(raised.value)


def test_an_expression_that_fails_is_no_request():
    with pytest.raises(HttpError, match="url interpolation error"):
        client("url: 'http://x/${! json(\"a\") }'").send(A, Seen().ex)


def test_a_request_needs_no_message_where_the_config_needs_none():
    with http_server(lambda asked: Reply(200, asked.body)) as server:
        answer = client(f"url: '{server.url}/${{! count(\"n\") }}', verb: GET").send([], Seen().ex)
    assert answer.body == b"" and server.asked[0].path == "/1"


def test_a_rate_limit_is_asked_before_each_request():
    limits = "rate_limit_resources: [{label: slow, local: {count: 1000, interval: 1h}}]\n"
    with http_server() as server:
        seen = Seen()
        asking = client(f"url: '{server.url}', rate_limit: slow", limits)
        asking.send(A, seen.ex)
        asking.send(A, seen.ex)
    assert seen.counts["rate_limit_checked"] == 2


def test_headers_of_another_request_that_frame_its_body_are_not_sent_on():
    fields = (
        "url: 'http://h/', headers: {content-length: '1', X-A: a}, "
        "metadata: {include_patterns: ['.*']}"
    )
    kept = RequestMaker(parse_config(f"output: {{http_client: {{{fields}}}}}").output.config)
    framed = {"Content-Length": "99", "transfer-encoding": "chunked", "Connection": "close"}
    message = Message(b"abc", {**framed, "TE": "trailers", "Trailer": "X", "X-B": "b"})
    request = kept.make([message], Execution(lambda: 0))
    assert [pair for pair in request.headers if pair[0] != "Content-Type"] == [
        ("X-A", "a"),
        ("X-B", "b"),
    ]
