"""The `http_server` input against real requests: what is answered, when, and what has landed."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.config.resources import ResourceText
from streamer.connectors.http_server.registry import EndpointRegistry
from streamer.connectors.http_server.requests import go_cipher_name
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.limits import DEFAULT_LIMITS, Limits
from streamer.core.message import Message
from streamer.sdk.input.input_context import open_input
from streamer.sdk.input.replayable import Limit
from streamer.sdk.sync_response import REQUEST, PendingRequests, add_answers
from tests.components.inputs.reading import Said, batches_of, built
from tests.components.inputs.rooms import Lodging, lodging
from tests.servers.certificates import certificate


class Served:
    """An input that listens, and what it has taken."""

    def __init__(self, lodged: Lodging, source: Any) -> None:
        self.lodged = lodged
        self.source = source
        self.url = lodged.said("url")
        self._at = source.initial_offset()

    def taken(self) -> list[list[Message]]:
        """Return what has landed since the last call, and answer what waits."""
        end = self.source.latest_offset(self._at, 0, Limit()).offset
        found = batches_of(self.source, self._at, end, ex=Said().execution())
        self._at = end
        return found

    def ask(self, run: Callable[[aiohttp.ClientSession], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with aiohttp.ClientSession(self.url) as session:
                return await run(session)

        return asyncio.run(main())

    def post(self, path: str = "/post", **more: Any) -> tuple[int, bytes, Any]:
        verb = more.pop("verb", "POST")

        async def run(session: aiohttp.ClientSession) -> Any:
            async with session.request(verb, path, **more) as found:
                return found.status, await found.read(), found.headers

        return self.ask(run)


@contextmanager
def served(
    tmp_path,
    fields: str = "",
    answers: PendingRequests | None = None,
    most: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
):
    source = built(f"input: {{http_server: {{address: '127.0.0.1:0'{fields}}}}}")
    if most is not None:
        source = replace(source, limit=Most(most))
    with lodging(tmp_path / "spool") as lodged:
        lodged.house.answers, lodged.house.limits = answers, limits
        yield Served(lodged, open_input(source, lodged.room))


class Most:
    """A rate limit that is reached after some accesses."""

    def __init__(self, most: int) -> None:
        self.left = most

    def access(self, ex: Execution) -> int:
        self.left -= 1
        return 0 if self.left >= 0 else 90 * SECOND


def test_a_body_is_a_message_with_all_that_is_known_of_its_request(tmp_path):
    with served(tmp_path, ", path: '/{kind}/post'") as server:
        status, body, _ = server.post(
            "/a b/post?q=1&q=2&z=x%20y",
            data=b"\x00\xffraw",
            headers={"x-one": "1", "Cookie": "c=d", "User-Agent": "me"},
        )
        assert (status, body) == (200, b"")
        ((message,),) = server.taken()
    assert message.raw == b"\x00\xffraw"
    assert {key: message.meta.get(key) for key in EXPECTED} == EXPECTED
    assert "Host" not in message.meta and REQUEST not in message.meta


EXPECTED = {
    "http_server_user_agent": "me",
    "http_server_request_path": "/a b/post",
    "http_server_verb": "POST",
    "http_server_remote_ip": "127.0.0.1",
    "X-One": "1",
    "User-Agent": "me",
    "Content-Type": "application/octet-stream",
    "q": "1",
    "z": "x y",
    "kind": "a b",
    "c": "d",
}


def test_the_parts_of_a_multipart_body_are_a_batch(tmp_path):
    body = (
        b"preamble\r\n--X y\r\nContent-Type: text/plain\r\n\r\none\r\n--X y\r\n\r\n\r\n\r\ntwo"
        b"\r\n--X y--\r\nepilogue"
    )
    with served(tmp_path) as server:
        content_type = {"Content-Type": 'multipart/mixed; boundary="X y"'}
        assert server.post(data=body, headers=content_type)[0] == 200
        assert [[m.raw for m in batch] for batch in server.taken()] == [[b"one", b"\r\n\r\ntwo"]]
        assert server.post(data=body[:60], headers=content_type)[:2] == (400, b"Bad request\n")
        assert server.post(data=b"", headers={"Content-Type": "a/b/c"})[0] == 400
        assert server.taken() == []
        assert ("WARN", "Request read failed: multipart: NextPart: EOF") in server.lodged.log


def test_a_body_is_as_long_as_it_is_and_stays_as_it_was_packed(tmp_path):
    with served(tmp_path) as server:
        data = bytes(range(256)) * (5 << 12)
        assert server.post(data=data, headers={"Content-Encoding": "gzip"})[0] == 200
        assert [[m.raw for m in batch] for batch in server.taken()] == [[data]]


def test_other_methods_and_paths_are_refused(tmp_path):
    with served(tmp_path, ", allowed_verbs: [PUT, GET], path: /all/, ws_path: ''") as server:
        assert server.post("/all/x")[:2] == (405, b"Incorrect method\n")
        assert server.post("/post", verb="PUT")[0] == 404
        assert server.post("/all/x", verb="GET")[0] == 200
        assert server.post("/all/", verb="PUT")[0] == 200
        assert len(server.taken()) == 2


def test_a_scanner_cuts_bodies_into_messages_when_they_are_read(tmp_path):
    with served(tmp_path, ", scanner: {lines: {}}") as server:
        server.post(data=b"1\n2\r\n3", headers={"x": "y"})
        server.post(data=b"4\n")
        found = server.taken()
    assert [[m.raw for m in batch] for batch in found] == [[b"1"], [b"2"], [b"3"], [b"4"]]
    assert [m.meta.get("X") for (m,) in found] == ["y", "y", "y", None]


def test_a_scanner_that_needs_the_whole_cuts_bodies_as_well(tmp_path):
    with served(tmp_path, ", scanner: {json_array: {}}") as server:
        server.post(data=b'[1,{"a":2}]')
        server.post(data=b"[3")
        found = [[m.raw for m in batch] for batch in server.taken()]
    assert found[:2] == [[b"1"], [b'{"a":2}']]


def test_a_rate_limit_lets_requests_in_until_it_is_reached(tmp_path):
    with served(tmp_path, most=2) as server:
        statuses = [server.post() for _ in range(3)]
        assert [status for status, _, _ in statuses] == [200, 200, 429]
        assert statuses[2][2]["Retry-After"] == "90"
        assert len(server.taken()) == 2


def test_a_full_spool_and_a_full_disk_are_told_and_it_goes_on_afterwards(tmp_path, monkeypatch):
    with served(tmp_path) as server:
        with monkeypatch.context() as full:
            full.setattr("streamer.connectors.spool.store.segment_bytes", lambda directory: 1 << 40)
            status, _, headers = server.post(data=b"1")
            assert (status, headers["Retry-After"]) == (429, "1")

        def broken(file: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as full:
            full.setattr("streamer.connectors.spool.store.sync_data", broken)
            assert server.post(data=b"2")[:2] == (503, b"Service unavailable\n")
        assert server.post(data=b"3")[0] == 200
        assert [[m.raw for m in batch] for batch in server.taken()] == [[b"3"]]
        assert ("ERROR", "Cannot write to the spool: No space left on device") in server.lodged.log


@contextmanager
def answering(server: Served, how: Callable[[list[Message]], list[Message]]) -> Iterator[None]:
    """Read what lands and answer it as a pipeline would, until the block ends."""
    over = threading.Event()

    def run() -> None:
        at = server.source.initial_offset()
        while not over.wait(0.005):
            end = server.source.latest_offset(at, 0, Limit()).offset
            ex = Said().execution()
            for batch in batches_of(server.source, at, end, ex=ex):
                add_answers(how(batch), ex)
            at = end
            server.lodged.house.answers.resolve(ex.answers, ex.refusals)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


SYNC = (
    ", timeout: 60s, sync_response: {status: '${! json(\"s\") }', headers: {X-A: "
    "'${! json(\"h\") }'}, metadata_headers: {include_prefixes: [out_]}}"
)


def test_what_the_pipeline_answers_is_the_response(tmp_path):
    with served(tmp_path, SYNC, answers=PendingRequests()) as server:

        def how(batch: list[Message]) -> list[Message]:
            (one,) = batch
            return [
                one.with_bytes(b'{"s":201,"h":"' + one.raw + b'"}').with_added_metadata(out_x="é")
            ]

        with answering(server, how):
            status, body, headers = server.post(data=b"abc")
    assert (status, body) == (201, b'{"s":201,"h":"abc"}')
    assert (headers["X-A"], headers["out_x"]) == ("abc", "é")
    assert headers["Content-Type"] == "text/plain; charset=utf-8"


def test_an_answers_headers_keep_the_limit_of_time_on_the_loop_that_serves_all(tmp_path):
    header = "${! range(0, 3000).fold(0, a -> a.tally + range(0, 3000).fold(0, b -> b.tally + 1)) }"
    fields = f", timeout: 60s, sync_response: {{headers: {{X-A: '{header}', X-B: b}}}}"
    limits = DEFAULT_LIMITS._replace(time=50_000_000)
    with served(tmp_path, fields, answers=PendingRequests(), limits=limits) as server:
        with answering(server, lambda batch: batch):
            status, _, headers = server.post(data=b"abc")
        said = " ".join(text for _, text in server.lodged.log)
    assert (status, headers.get("X-A"), headers["X-B"]) == (200, None, "b")
    assert "header X-A error: it takes longer than the 50ms that limits.time allows" in said


def test_who_has_sent_a_rejected_message_gets_the_reason_at_once(tmp_path):
    with served(tmp_path, ", timeout: 60s", answers=PendingRequests()) as server:
        over = threading.Event()

        def reject() -> None:
            at = server.source.initial_offset()
            while not over.wait(0.005):
                end = server.source.latest_offset(at, 0, Limit()).offset
                ex = Said().execution()
                for batch in batches_of(server.source, at, end, ex=ex):
                    if batch[0].raw == b"bad":
                        ex.refusals[batch[0].meta[REQUEST]] = "three is bad"
                at = end
                server.lodged.house.answers.resolve(ex.answers, ex.refusals)

        thread = threading.Thread(target=reject)
        thread.start()
        try:
            said = [server.post(data=raw)[:2] for raw in (b"good", b"bad", b"good")]
        finally:
            over.set()
            thread.join()
    assert said == [(200, b""), (502, b"three is bad\n"), (200, b"")]


@pytest.mark.parametrize("count", [1, 2])
def test_headers_of_the_requests_connection_and_body_are_not_sent_back(tmp_path, count):
    fields = (
        ", timeout: 60s, sync_response: {headers: {Content-Length: '1000', X-A: a}, "
        "metadata_headers: {include_patterns: ['.*']}}"
    )
    own = {
        "Accept-Encoding": "identity",
        "X-B": "b",
        "TE": "trailers",
        "Connection": "keep-alive, X-B",
        "Keep-Alive": "max=1",
    }
    with served(tmp_path, fields, answers=PendingRequests()) as server:

        def how(batch: list[Message]) -> list[Message]:
            framed = {"content-length": "9", "Transfer-Encoding": "chunked", "upgrade": "h2c"}
            return [one.with_bytes(b"short").with_added_metadata(**framed) for one in batch * count]

        with answering(server, how):
            started = time.monotonic()
            status, body, headers = server.post(data=b'{"a":"0123456789"}', headers=own)
            assert time.monotonic() - started < 30
    assert status == 200 and body.count(b"short") == count
    assert (headers["X-A"], headers["X-B"]) == ("a", "b")
    assert headers["Content-Length"] == str(len(body))
    assert not {"te", "keep-alive", "transfer-encoding", "upgrade"} & {n.lower() for n in headers}


def test_several_answers_are_a_multipart_response_and_none_is_an_empty_one(tmp_path):
    with served(tmp_path, ", timeout: 60s", answers=PendingRequests()) as server:

        def how(batch: list[Message]) -> list[Message]:
            return [one.with_bytes(one.raw * n) for one in batch for n in range(1, len(one.raw))]

        with answering(server, how):
            _, body, headers = server.post(data=b"xyz")
            assert server.post(data=b"x")[:2] == (200, b"")
    kind, _, boundary = headers["Content-Type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    parts = body.split(f"--{boundary}".encode())
    assert [part.partition(b"\r\n\r\n")[2] for part in parts[1:3]] == [b"xyz\r\n", b"xyzxyz\r\n"]
    assert parts[3] == b"--\r\n"


def test_a_request_that_is_not_answered_in_time_is_told_so(tmp_path):
    with served(tmp_path, ", timeout: 200ms", answers=PendingRequests()) as server:
        assert server.post(data=b"late")[:2] == (408, b"Request timed out\n")
        found: list[list[Message]] = []
        until = time.monotonic() + 60
        while not found and time.monotonic() < until:
            found = server.taken()
        assert [m.raw for (m,) in found] == [b"late"]


def test_a_response_is_packed_for_who_asks_for_it(tmp_path):
    with (
        served(tmp_path, ", timeout: 60s", answers=PendingRequests()) as server,
        answering(server, lambda batch: [one.with_bytes(b"y" * 1000) for one in batch]),
    ):
        status, body, headers = server.post(data=b"x", headers={"Accept-Encoding": "gzip"})
    assert (status, body, headers["Content-Encoding"]) == (200, b"y" * 1000, "gzip")


def test_each_message_of_a_websocket_is_taken_and_answered(tmp_path):
    async def run(session: aiohttp.ClientSession) -> list[Any]:
        async with session.ws_connect("/post/ws?a=b") as ws:
            found = [await ws.receive_bytes()]
            await ws.send_str("héllo")
            found.append(await ws.receive_str())
            await ws.send_bytes(b"\x00")
            found.append(await ws.receive_str())
            return found

    fields = ", ws_welcome_message: hi"
    with served(tmp_path, fields, answers=PendingRequests()) as server:
        with answering(server, lambda batch: [one.with_bytes(one.raw * 2) for one in batch]):
            assert server.ask(run) == [b"hi", "héllohéllo", "\x00\x00"]
        found = server.taken()
    assert [m.raw for (m,) in found] == ["héllo".encode(), b"\x00"]
    assert found[0][0].meta["a"] == "b" and "http_server_verb" not in found[0][0].meta


def test_a_websocket_hears_what_the_rate_limit_does_not_let_in(tmp_path):
    async def run(session: aiohttp.ClientSession) -> bytes:
        async with session.ws_connect("/post/ws") as ws:
            for text in ("1", "2"):
                await ws.send_str(text)
            return await ws.receive_bytes()

    with served(tmp_path, ", ws_rate_limit_message: slow", most=1) as server:
        assert server.ask(run) == b"slow"
        assert [m.raw for (m,) in server.taken()] == [b"1"]


def test_pages_of_other_origins_open_no_websockets(tmp_path):
    async def run(session: aiohttp.ClientSession) -> int:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect("/post/ws", headers={"Origin": "http://evil.example"})
        return refused.value.status

    with served(tmp_path) as server:
        assert server.ask(run) == 403


def test_tls_is_spoken_with_a_certificate(tmp_path):
    certificate(tmp_path)
    files = f", cert_file: {tmp_path}/cert.pem, key_file: {tmp_path}/key.pem"
    with served(tmp_path, files) as server:
        assert server.url.startswith("https://")
        trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        trusted.check_hostname = False
        assert server.post(data=b"1", ssl=trusted)[0] == 200
        ((message,),) = server.taken()
    assert message.meta["http_server_tls_version"] == "TLSv1.3"
    assert message.meta["http_server_tls_cipher_suite"].startswith("TLS_")


def test_cipher_suites_have_the_names_of_the_registry():
    assert go_cipher_name("TLS_AES_128_GCM_SHA256") == "TLS_AES_128_GCM_SHA256"
    found = go_cipher_name("ECDHE-RSA-AES256-GCM-SHA384")
    assert found == "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    found = go_cipher_name("ECDHE-ECDSA-CHACHA20-POLY1305")
    assert found == "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    assert go_cipher_name("ECDHE-RSA-AES128-SHA") == "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"


def test_other_origins_are_allowed_when_cors_says_so(tmp_path):
    with served(tmp_path, ", cors: {enabled: true, allowed_origins: ['http://a.example']}") as it:
        for origin, allowed in (("http://a.example", "http://a.example"), ("http://b", None)):
            _, _, headers = it.post(headers={"Origin": origin})
            assert headers.get("Access-Control-Allow-Origin") == allowed


def test_above_the_spools_limit_nothing_is_taken_until_something_is_read(tmp_path):
    source = built("input: {http_server: {address: '127.0.0.1:0'}}")
    with lodging(tmp_path / "spool") as lodged:
        lodged.house.spool_limit = 1 << 20
        server = Served(lodged, open_input(source, lodged.room))
        statuses = [server.post(data=b"x" * (300 << 10)) for _ in range(5)]
        assert [status for status, _, _ in statuses] == [200] * 4 + [429]
        assert statuses[-1][2]["Retry-After"] == "1"
        assert "spark.spool_limit allows no more" in lodged.log[-1][1]
        assert len(server.taken()) == 4
        server.source.on_committed(server._at)
        assert server.post(data=b"y")[0] == 200
        assert [[m.raw for m in b] for b in server.taken()] == [[b"y"]]


def test_after_the_stop_nothing_is_taken(tmp_path):
    endpoints = EndpointRegistry()
    endpoints.served = True
    with lodging(tmp_path) as lodged:
        lodged.house.endpoints = endpoints
        open_input(built("input: {http_server: {}}"), lodged.room)
        assert set(endpoints.list_paths()) == {"/post", "/post/ws"}
        handler, parameters = endpoints.find("/post")
    response = asyncio.run(handler(None, parameters))
    assert (response.status, response.text) == (503, "Server closing\n")


def test_an_input_of_another_file_has_no_prefix(tmp_path):
    resources = "input_resources: [{label: intake, broker: {inputs: [{http_server: {}}]}}]"
    own = "{http_server: {path: /own, ws_path: ''}}"
    config = parse_config(
        f"input: {{broker: {{inputs: [{own}, {{resource: intake}}]}}}}",
        "shop.yaml",
        resources=[ResourceText("resources.yaml", resources, {})],
    )
    source = build_context(config.resources, config.input).build(config.input)
    endpoints = EndpointRegistry("shop.yaml")
    endpoints.served = endpoints.prefixed = True
    with lodging(tmp_path) as lodged:
        lodged.house.endpoints = endpoints
        open_input(source, lodged.room)
        assert set(endpoints.list_paths()) == {"/own"}
        assert set(endpoints.list_paths(of_resource=True)) == {"/post", "/post/ws"}
        assert endpoints.find("/post") is None and endpoints.find("/post", of_resource=True)


def test_a_path_that_another_input_serves_is_refused_at_the_start(tmp_path):
    endpoints = EndpointRegistry()
    endpoints.served = True
    with lodging(tmp_path) as lodged:
        lodged.house.endpoints = endpoints
        open_input(built("input: {http_server: {path: '/{a}'}}"), lodged.room.child("1"))
        other = built("input: {http_server: {path: '/{b}', ws_path: /other}}")
        with pytest.raises(StreamerError, match="another path, or an address of its own"):
            open_input(other, lodged.room.child("2"))
        assert set(endpoints.list_paths()) == {"/{a}", "/post/ws"}


def test_one_after_the_other_may_serve_the_same_path(tmp_path):
    endpoints = EndpointRegistry()
    endpoints.served = True
    with lodging(tmp_path) as lodged:
        lodged.house.endpoints = endpoints
        first = lodged.room.stoppable_child("1")
        open_input(built("input: {http_server: {}}"), first.context)
        first.stop()
        open_input(built("input: {http_server: {}}"), lodged.room.child("2"))


def test_without_an_address_and_a_server_it_says_what_to_do(tmp_path):
    with (
        lodging(tmp_path) as lodged,
        pytest.raises(StreamerError, match=r"no address.*set http\.enabled to true"),
    ):
        open_input(built("input: {http_server: {}}"), lodged.room)


def test_a_taken_address_is_named(tmp_path):
    with served(tmp_path) as server, lodging(tmp_path / "other") as lodged:
        address = server.url.removeprefix("http://")
        again = built(f"input: {{http_server: {{address: '{address}'}}}}")
        with pytest.raises(StreamerError, match=f"cannot listen on {address}: address already"):
            open_input(again, lodged.room)
