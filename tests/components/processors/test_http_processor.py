"""`http` as a processor, against a real server, and `sync_response`."""

from __future__ import annotations

import threading

import pytest

from streamer.core.message import Message
from streamer.sdk.sync_response import REQUEST
from tests.servers.http import Asked, Reply, http_server

from .conftest import Make, Run, messages


def test_the_answer_replaces_the_message(make: Make, a_run: Run) -> None:
    def answers(asked: Asked) -> Reply:
        return Reply(201, b"<" + asked.body + b">", {"X-A": "1", "Other": "2"})

    with http_server(answers) as server:
        processor = make(
            f"http: {{url: '{server.url}/${{! content() }}', "
            "extract_headers: {include_prefixes: [x-]}}"
        )
        [found] = processor.process([Message(b"a", {"k": "v"}), Message(b"b")], a_run.ex)
    assert [message.raw for message in found] == [b"<a>", b"<b>"]
    assert found[0].meta == {"k": "v", "http_status_code": 201, "x-a": "1"}
    assert [(asked.method, asked.path) for asked in server.asked] == [
        ("POST", "/a"),
        ("POST", "/b"),
    ]


def test_a_request_that_fails_leaves_the_message_marked(make: Make, a_run: Run) -> None:
    def answers(asked: Asked) -> Reply:
        return Reply(418 if asked.body == b"b" else 200, b"no tea", {"X-A": "1"})

    with http_server(answers) as server:
        processor = make(
            f"http: {{url: '{server.url}', retries: 0, drop_on: [418], "
            "extract_headers: {include_prefixes: [x-]}}"
        )
        [[fine, failed]] = processor.process(messages("a", "b"), a_run.ex)
    assert (fine.raw, fine.error) == (b"no tea", None)
    assert (failed.raw, failed.meta) == (b"b", {"http_status_code": 418, "x-a": "1"})
    text = f"{server.url}: HTTP request returned unexpected response code (418): 418 "
    assert failed.error is not None and failed.error.startswith(text)
    assert a_run.logged == [("ERROR", f"HTTP request to '{server.url}' failed: {failed.error}")]
    assert [one for one in a_run.counted if one[0] == "processor_error"] == [("processor_error", 1)]


def test_requests_of_a_batch_are_made_at_once_when_parallel(make: Make, a_run: Run) -> None:
    # No request is answered before all have come: one after the other they would never be.
    together = threading.Barrier(8, timeout=60)

    def answers(asked: Asked) -> Reply:
        together.wait()
        return Reply(500 if asked.body == b"3" else 200, b"<" + asked.body + b">")

    with http_server(answers) as server:
        processor = make(f"http: {{url: '{server.url}', parallel: true, retries: 0}}")
        [found] = processor.process(messages(*"01234567"), a_run.ex)
    expected = [b"3" if letter == "3" else f"<{letter}>".encode() for letter in "01234567"]
    assert [message.raw for message in found] == expected
    assert [number for number, message in enumerate(found) if message.error is not None] == [3]
    assert a_run.logged[0][1].startswith(f"HTTP parallel request to '{server.url}' failed: ")


@pytest.mark.parametrize("answered", [1, 2, 3])
def test_a_batch_can_be_one_request_of_several_parts(answered: int, make: Make, a_run: Run) -> None:
    body = b"".join(b"--x\r\n\r\n%d\r\n" % number for number in range(answered)) + b"--x--\r\n"
    kind = {"Content-Type": "multipart/mixed; boundary=x"}
    with http_server(lambda asked: Reply(200, body, kind)) as server:
        processor = make(f"http: {{url: '{server.url}', batch_as_multipart: true}}")
        batch = [Message(b"a", {"k": 0}), Message(b"b", {"k": 1})]
        [found] = processor.process(batch, a_run.ex)
    assert len(server.asked) == 1
    assert server.asked[0].headers["content-type"].startswith("multipart/form-data; boundary=")
    # What has no message of its own takes the metadata of the first one.
    told = [(str(n).encode(), n if n < 2 else 0) for n in range(answered)]
    assert [(message.raw, message.meta["k"]) for message in found] == told


def test_an_answer_of_no_parts_marks_the_batch(make: Make, a_run: Run) -> None:
    kind = {"Content-Type": "multipart/mixed; boundary=x"}
    with http_server(lambda asked: Reply(200, b"--x--\r\n", kind)) as server:
        processor = make(f"http: {{url: '{server.url}', retries: 0}}")
        [[found]] = processor.process(messages("a"), a_run.ex)
    assert (found.raw, found.error) == (b"a", f"HTTP response from '{server.url}' was empty")


def test_a_sync_response_answers_with_the_message_as_it_is(make: Make, a_run: Run) -> None:
    a_run.ex.answers["r1"] = []
    batch = [Message(b"a", {REQUEST: "r1"}), Message(b"b", {REQUEST: "r2"}), Message(b"c")]
    assert make("sync_response: {}").process(batch, a_run.ex) == [batch]
    assert [message.raw for message in a_run.ex.answers["r1"]] == [b"a"]
    assert list(a_run.ex.answers) == ["r1"]
