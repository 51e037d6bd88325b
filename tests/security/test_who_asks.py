"""By which name a server may be asked for, and how often a password may be tried."""

from __future__ import annotations

import base64
import hashlib
import socket
import time
from pathlib import Path

import pytest

from streamer.service.access.auth import LoginThrottle
from tests.security.clients import raw_answer
from tests.service.api.asking import asking
from tests.service.fleet.pretending import config_text
from tests.service.serving import serving
from tests.slowness import is_within

ANYWHERE = "0.0.0.0:0"


def _status(url: str, method: str, path: str, host: str, more: str = "", body: str = "") -> int:
    port = url.rpartition(":")[2]
    request = (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}"
        f"Content-Type: application/yaml\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )
    return int(raw_answer(f"http://127.0.0.1:{port}", request.encode()).split()[1])


@pytest.mark.parametrize("address", ["0.0.0.0:0", "127.0.0.1:0"])
def test_a_page_that_was_given_this_machines_address_changes_and_reads_nothing(
    tmp_path: Path, address: str
) -> None:
    with asking(tmp_path, address=address) as asked:
        evil = "Origin: http://evil.example:4195\r\nSec-Fetch-Site: same-origin\r\n"
        name = "evil.example:4195"
        body = config_text("x")
        assert _status(asked.url, "POST", "/streams/rebound", name, evil, body) == 403
        for path in ("/streams", "/benthos/streams", "/openapi.json", "/streams/a/config", "/"):
            assert _status(asked.url, "GET", path, name) == 403
        assert asked.stage.on == {}
        own = socket.gethostname()
        for allowed in ("127.0.0.1:4195", "127.0.0.2", "[::1]:1", "localhost", own, own.upper()):
            assert _status(asked.url, "GET", "/streams", allowed) == 200
        for host in ("localhost.evil.example", "evil.example.", "", "127.0.0.1.nip.io"):
            assert _status(asked.url, "GET", "/streams", host) in (400, 403)
        # A host and a port, and nothing that a proxy in front may read as another host.
        for host in (
            *("evil.example@localhost", "localhost/evil", "localhost?evil", "localhost#evil"),
            *(
                "localhost:4195.evil",
                "localhost:x",
                "[::1]evil",
                "127.0.0.1:80:80",
                "localhost evil",
            ),
        ):
            assert _status(asked.url, "GET", "/streams", host) in (400, 403), host
        # A request that names a whole URL asks by that one's host, whatever Host says.
        whole = "http://evil.example/streams/a/pause"
        assert _status(asked.url, "POST", whole, "localhost") == 403
        assert _status(asked.url, "GET", "http://localhost:1/streams", "evil.example") == 200


def test_names_that_the_config_gives_are_the_servers(tmp_path: Path) -> None:
    with asking(tmp_path, "allowed_hosts: [Streams.example.com]", address=ANYWHERE) as asked:
        assert _status(asked.url, "GET", "/streams", "streams.example.com:4195") == 200
        assert _status(asked.url, "GET", "/streams", "example.com") == 403
        # Then the names of senders matter, too.
        assert _status(asked.url, "GET", "/a/post", "example.com") == 403


def test_probes_metrics_and_senders_may_use_any_name_of_an_orchestrator(tmp_path: Path) -> None:
    with asking(tmp_path, address=ANYWHERE) as asked:
        for path in ("/ping", "/ready", "/metrics", "/benthos/ping"):
            assert _status(asked.url, "GET", path, "lights.default.svc") != 403
        assert _status(asked.url, "POST", "/lights/post", "lights.default.svc") == 404


def test_who_has_credentials_may_use_any_name() -> None:
    digest = base64.b64encode(hashlib.sha256(b"long and random").digest()).decode()
    bearer = f"bearer_auth: {{ enabled: true, tokens: [ {{ name: ci, token_hash: {digest} }} ] }}"
    with serving(bearer, address=ANYWHERE) as server:
        header = "Authorization: Bearer long and random\r\n"
        assert _status(server.url, "GET", "/endpoints", "any.example", header) == 200
        assert _status(server.url, "GET", "/endpoints", "any.example") == 401


def test_an_address_tries_few_passwords_and_who_is_known_does_not_wait() -> None:
    digest = base64.b64encode(hashlib.sha256(b"long and random").digest()).decode()
    bearer = f"bearer_auth: {{ enabled: true, tokens: [ {{ name: ci, token_hash: {digest} }} ] }}"
    with serving(bearer) as server:
        right = "Authorization: Bearer long and random\r\n"
        assert _status(server.url, "GET", "/endpoints", "localhost", right) == 200
        began = time.monotonic()
        for number in range(7):
            wrong = f"Authorization: Bearer {number}\r\n"
            assert _status(server.url, "GET", "/endpoints", "localhost", wrong) == 401
        assert time.monotonic() - began >= 2.0
        began = time.monotonic()
        assert _status(server.url, "GET", "/endpoints", "localhost", right) == 200
        assert is_within(0.9, time.monotonic() - began)


def test_those_who_wait_for_their_turn_are_few() -> None:
    now = [100.0]
    throttle = LoginThrottle(lambda: now[0])
    for _ in range(5):
        assert throttle.reserve_attempt("a") == 0.0
        throttle.record_failure("a")
    waits = [throttle.reserve_attempt("a") for _ in range(10)]
    assert waits[:6] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] and waits[6:] == [None] * 4
    assert throttle.reserve_attempt("b") == 0.0
    now[0] += 601
    assert throttle.reserve_attempt("a") == 0.0
    for number in range(20_000):
        throttle.record_failure(str(number))
    assert len(throttle._failures) <= 10_000
