"""`http_client` against a real server: requests, batches, retries, who asks, and what is logged."""

from __future__ import annotations

import base64
import threading

import pytest

from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.sdk.sync_response import REQUEST
from tests.components.outputs.scripted import KEY, Seen, batches, built
from tests.servers.http import Reply, http_server


def test_a_message_is_the_body_of_a_request():
    with http_server() as server:
        sent = built(
            f"http_client: {{url: '{server.url}/${{! content() }}', verb: PUT, "
            "headers: {X-Kind: '${! @kind }', Host: elsewhere}, "
            "metadata: {include_prefixes: [a_]}}"
        ).deliver([[Message(b"m", {"kind": "k", "a_b": 7, "b": 1})]], Seen().ex)
    assert sent.errors == [None]
    [asked] = server.asked
    assert (asked.method, asked.path, asked.body) == ("PUT", "/m", b"m")
    assert asked.headers["content-type"] == "application/octet-stream"
    named = {name: asked.headers.get(name) for name in ("x-kind", "host", "a_b", "b")}
    assert named == {"x-kind": "k", "host": "elsewhere", "a_b": "7", "b": None}


def test_a_message_does_not_lead_the_request_elsewhere():
    with http_server() as server:
        output = built(f"http_client: {{url: '{server.url}/tenants/${{! content() }}/orders'}}")
        sent = output.deliver([[Message(b"../../pwned")], [Message(b"ada")]], Seen().ex)
        assert [one is None for one in sent.errors] == [False, True]
        assert sent.errors[0] is not None and sent.errors[0].is_rejected
        assert "a segment '.' or '..' that the message has brought" in str(sent.errors[0].text)
    assert [asked.path for asked in server.asked] == ["/tenants/ada/orders"]


def test_a_batch_is_sent_message_by_message_and_only_the_rest_again():
    refused = iter([True])
    with http_server(lambda a: Reply(500 if a.body == b"b" and next(refused, False) else 200)) as s:
        output = built(f"http_client: {{url: '{s.url}', retries: 0, max_in_flight: 1}}")
        sent = output.deliver(batches("abc"), Seen().ex)
        assert sent.errors[0] is not None and sorted(sent.errors[0].errors) == [1, 2]
        assert "unexpected response code (500): 500 Internal" in sent.errors[0].text
        [left] = sent.failures(batches("abc"))
        assert output.deliver([left.batch], Seen().ex).errors == [None]
    assert s.bodies == [b"a", b"b", b"b", b"c"]


def test_a_batch_can_be_one_request_of_several_parts():
    with http_server() as server:
        fields = "batch_as_multipart: true, batching: {count: 2}"
        built(f"http_client: {{url: '{server.url}', {fields}}}").deliver(
            batches("a", "b", "c"), Seen().ex
        )
    # What goes out at once comes in any order.
    several, one = sorted(server.asked, key=lambda asked: -len(asked.body))
    kind = several.headers["content-type"]
    assert kind.startswith("multipart/form-data; boundary=")
    mark = kind.rpartition("=")[2].encode()
    part = b"--" + mark + b"\r\nContent-Type: application/octet-stream\r\n\r\n"
    assert several.body == part + b"a\r\n" + part + b"b\r\n--" + mark + b"--\r\n"
    assert one.body == b"c"


def test_the_parts_of_a_request_can_be_told():
    part = "{content_type: text/x, content_disposition: 'form-data; name=\"n\"', "
    part += "body: '<${! content() }>'}"
    with http_server() as server:
        built(f"http_client: {{url: '{server.url}', multipart: [{part}]}}").deliver(
            batches("a"), Seen().ex
        )
    assert (
        b'Content-Disposition: form-data; name="n"\r\nContent-Type: text/x\r\n\r\n<a>\r\n'
        in (server.bodies[0])
    )


@pytest.mark.parametrize(
    ("codes", "fields", "tries", "failed", "pauses"),
    [
        ([500, 200], "", 2, False, [1]),
        ([500, 500, 500, 500], "", 4, True, [1, 1, 1]),
        ([429, 429, 429, 200], "", 4, False, [1, 2, 4]),
        ([429] * 3, "retries: 2, max_retry_backoff: 1s", 3, True, [1, 1]),
        ([404], "drop_on: [404]", 1, True, []),
        ([500, 404], "drop_on: [404]", 2, True, [1]),
        ([409], "successful_on: [409]", 1, False, []),
        ([200], "drop_on: [200]", 1, True, []),
        ([302], "follow_redirects: false", 1, False, []),
        ([503, 503], "retries: 1, retry_period: 3s", 2, True, [3]),
    ],
)
def test_codes_decide_whether_a_request_is_repeated(codes, fields, tries, failed, pauses):
    left, seen = iter(codes), Seen()
    with http_server(lambda asked: Reply(next(left))) as server:
        output = built(f"http_client: {{url: '{server.url}', {fields}}}")
        [error] = output.deliver(batches("a"), seen.ex).errors
    assert (len(server.asked), error is not None) == (tries, failed)
    assert [pause / 1e9 for pause in seen.pauses] == pauses
    classes = {name: number for name, number in seen.counts.items() if name.startswith("http")}
    assert sum(classes.values()) == tries
    assert classes[f"http_request_code_{codes[0] // 100}xx"] >= 1
    assert sum(seen.ex.stats_of(("http_request", *KEY[1:])).buckets.values()) == tries


def test_a_server_that_is_not_there_is_a_failure():
    with http_server() as server:
        pass
    [error] = (
        built(f"http_client: {{url: '{server.url}', retries: 0}}")
        .deliver(batches("a"), Seen().ex)
        .errors
    )
    assert error is not None and error.text.startswith(f"{server.url}: ")


def test_an_answer_that_takes_too_long_is_a_failure():
    never = threading.Event()

    def answers(asked):
        never.wait(60)
        return Reply()

    with http_server(answers) as server:
        output = built(f"http_client: {{url: '{server.url}', retries: 0, timeout: 50ms}}")
        [error] = output.deliver(batches("a"), Seen().ex).errors
        never.set()
    assert error is not None and "timed out" in error.text


def test_redirects_are_followed():
    def answers(asked):
        return Reply(307, headers={"Location": "/b"}) if asked.path == "/a" else Reply()

    with http_server(answers) as server:
        output = built(f"http_client: {{url: '{server.url}/a'}}")
        assert output.deliver(batches("m"), Seen().ex).errors == [None]
    assert [(asked.path, asked.body) for asked in server.asked] == [("/a", b"m"), ("/b", b"m")]


def test_a_name_and_a_password_are_sent_and_not_logged():
    seen = Seen()
    with http_server(lambda asked: Reply(200, b'{"ok":true}')) as server:
        built(
            f"http_client: {{url: '{server.url}', dump_request_log_level: INFO, "
            "basic_auth: {enabled: true, username: u, password: wordpass}}"
        ).deliver(batches("a"), seen.ex)
    assert base64.b64decode(server.asked[0].headers["authorization"].split()[1]) == b"u:wordpass"
    assert ("INFO", "http request log") in seen.lines


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("url: ''", "is empty; expected a URL"),
        ("url: x, drop_on: [20]", "20, which is not a code of HTTP"),
        ("url: x, max_in_flight: 0", "is 0; expected 1 or more"),
        ("url: x, rate_limit: none", "none"),
        ("url: x, tls: {enable_renegotiation: true}", "OpenSSL cannot do"),
        ("url: x, tls: {client_certs: [{cert_file: a}]}", "missing key_file"),
        ("url: x, jwt: {signing_method: HS256}", "expected one of RS256"),
        ("url: x, oauth2: {endpoint_params: {a: b}}", "expected a list of strings"),
        ("url: x, metadata: {include_patterns: ['(']}", "not a regular expression"),
        ("url: x, batching: {count: -1}", "is -1; expected 0"),
    ],
)
def test_what_is_wrong_is_told(fields, text):
    with pytest.raises(ConfigError, match=text.replace("(", r"\(")):
        built(f"http_client: {{{fields}}}")


def test_what_the_server_answers_can_be_given_back_to_who_has_asked():
    seen = Seen()
    seen.ex.answers["r1"] = []
    with http_server(lambda asked: Reply(201, b"re:" + asked.body, {"X-A": "1"})) as server:
        fields = "propagate_response: true, extract_headers: {include_prefixes: [x-]}"
        built(f"http_client: {{url: '{server.url}', {fields}}}").deliver(
            [[Message(b"a", {REQUEST: "r1", "kept": 1})]], seen.ex
        )
    [message] = seen.ex.answers["r1"]
    assert message.raw == b"re:a"
    named = {key: message.meta[key] for key in ("kept", "x-a", "http_status_code")}
    assert named == {"kept": 1, "x-a": "1", "http_status_code": 201}


def test_a_sync_response_answers_and_others_are_dropped():
    seen = Seen()
    seen.ex.answers["r1"] = []
    batch = [Message(b"a", {REQUEST: "r1"}), Message(b"b", {REQUEST: "gone"}), Message(b"c")]
    assert built("sync_response: {}").deliver([batch], seen.ex).errors == [None]
    assert [message.raw for message in seen.ex.answers["r1"]] == [b"a"]
