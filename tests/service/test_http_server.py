"""The HTTP server of a stream: its endpoints, who may ask, and what it does not tell."""

from __future__ import annotations

import base64
import hashlib
import socket
import ssl
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import bcrypt
import pytest
from aiohttp import web
from argon2 import PasswordHasher

from streamer import __version__
from streamer.config import parse_config
from streamer.core.errors import StreamerError
from streamer.engine.report.start_progress import StartPhase
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.access.auth import Authenticator
from streamer.service.api.server import HttpServer
from streamer.service.monitoring.stream_view import StreamState, StreamView
from tests.servers.certificates import certificate

from .serving import serving

STREAM = "input: { label: in, stdin: {} }\noutput: { drop: {} }\n"


def test_every_endpoint_is_there_with_and_without_the_prefix() -> None:
    with serving() as server:
        assert server.get("/ping")[:2] == (200, b"pong")
        assert server.get("/benthos/ping")[:2] == (200, b"pong")
        assert server.json("/version") == {"version": __version__, "built": ""}
        paths = ["/endpoints", "/history", "/metrics", "/ping", "/ready", "/stats", "/version"]
        paths += ["/why"]
        assert sorted(server.json("/endpoints")) == paths
        for path in paths:
            assert server.get(f"/benthos{path}")[0] in (200, 503)
        assert server.get("/nope")[0] == 404
        # The address that the log shows says what can be asked for.
        assert server.json("/") == server.json("/benthos/") == server.json("/endpoints")


def test_no_browser_takes_an_answer_for_a_page() -> None:
    with serving("basic_auth: { enabled: true, username: u, password_hash: 'eA==' }") as server:
        refused = server.get("/version")
        assert refused[0] == 401 and refused[2]["x-content-type-options"] == "nosniff"
    with serving("debug_endpoints: true") as server:
        for path in ("/ping", "/version", "/ready", "/endpoints", "/metrics", "/nope", "/"):
            answer = server.get(path)[2]
            assert answer["x-content-type-options"] == "nosniff", path
        assert server.get("/version", Host="evil.example")[0] == 403
        assert server.get("/version", Host="evil.example")[2]["x-content-type-options"] == "nosniff"


def test_what_a_component_is_to_serve_is_asked_for_again_while_the_stream_starts() -> None:
    config = "input: {http_server: {path: '/post/{id}', ws_path: ''}}\noutput: {drop: {}}\n"
    with serving(rest=config) as server:
        status, body, headers = server.get("/post/5")
        assert (status, headers["Retry-After"]) == (503, "1")
        assert body == b"Error: the stream is starting: try again\n"
        assert server.get("/benthos/post/5")[0] == 503
        assert server.get("/post")[0] == server.get("/post/5/6")[0] == 404

        async def answer(request: web.BaseRequest, found: Mapping[str, str]) -> web.Response:
            return web.Response(text=found["id"])

        server.view.endpoints.add("the input http_server", {"/post/{id}": ("", answer)})
        assert server.get("/post/5")[:2] == (200, b"5")


@pytest.mark.parametrize(("root", "status"), [("''", 404), ("/x/y", 404), ("/benthos/", 200)])
def test_the_prefix_is_the_configs(root: str, status: int) -> None:
    with serving(f"root_path: {root}") as server:
        assert server.get("/benthos/ping")[0] == status
        assert server.get("/ping")[0] == 200
        if root.startswith("/x"):
            assert server.get("/x/y/ping")[0] == 200


def test_ready_says_which_end_is_connected() -> None:
    with serving(rest=STREAM) as server:
        ends = [{"label": "in", "path": "input"}, {"label": "", "path": "output"}]

        def statuses(*connected: bool, **more: str) -> list[dict[str, object]]:
            return [
                {**end, "connected": is_so, **more}
                for end, is_so in zip(ends, connected, strict=True)
            ]

        def ready() -> tuple[int, str, dict[str, object]]:
            body = server.json("/ready")
            condition: dict[str, object] = body.pop("condition")
            return server.get("/ready")[0], str(condition["name"]), body

        starting = "the stream is starting"
        assert ready() == (
            *(503, "starting"),
            {"error": starting, "statuses": statuses(False, False)},
        )
        # What an output is told comes with the first window, perhaps in an hour: it is connected.
        server.view.set_running(lambda: StreamState(Snapshot(), {}))
        server.view.start.begin(StartPhase.FIRST_BATCH)
        starting += ": first micro-batch"
        assert ready() == (
            *(503, "starting"),
            {"error": starting, "statuses": statuses(True, True)},
        )
        server.view.set_running(lambda: StreamState(Snapshot(batch=0), {}))
        assert ready() == (200, "running", {"statuses": statuses(True, True)})
        server.view.set_running(lambda: StreamState(Snapshot(batch=3), {}, "disk full"))
        failed = {"statuses": statuses(False, False, error="disk full")}
        assert ready() == (503, "retrying", failed)
        server.view.set_running(lambda: StreamState(Snapshot(batch=3), {}))
        server.view.set_ended()
        code, body, _ = server.get("/ready")
        assert code == 503 and b'"error":"stream terminated"' in body


def test_basic_auth_lets_only_the_user_in() -> None:
    digest = base64.b64encode(hashlib.sha256(b"sesame").digest()).decode()
    fields = (
        f"basic_auth: {{ enabled: true, realm: 'a \"b', username: me, password_hash: {digest} }}"
    )
    with serving(fields) as server:
        code, body, headers = server.get("/version")
        assert (code, body) == (401, b"Unauthorized\n")
        assert headers["WWW-Authenticate"] == 'Basic realm="a \\"b", charset="UTF-8"'
        right = base64.b64encode(b"me:sesame").decode()
        assert server.get("/version", Authorization=f"Basic {right}")[0] == 200
        for wrong in (b"me:sesame!", b"you:sesame", b"me", b":"):
            given = base64.b64encode(wrong).decode()
            assert server.get("/version", Authorization=f"Basic {given}")[0] == 401
        assert server.get("/version", Authorization=f"Bearer {right}")[0] == 401
        assert server.get("/version", Authorization="Basic %%%")[0] == 401


@pytest.mark.parametrize("root", ["", "/benthos"])
def test_probes_have_no_credentials_and_hear_no_more_than_a_status(root: str) -> None:
    digest = base64.b64encode(hashlib.sha256(b"token").digest()).decode()
    fields = f"bearer_auth: {{ enabled: true, tokens: [ {{ name: ci, token_hash: {digest} }} ] }}"
    with serving(fields, STREAM) as server:
        assert server.get(f"{root}/ping")[:2] == (200, b"pong")
        assert server.get(f"{root}/ready")[:2] == (503, b"not ready\n")
        right, wrong = "Bearer token", "Bearer tokem"
        assert b"statuses" in server.get(f"{root}/ready", Authorization=right)[1]
        assert server.get(f"{root}/ready", Authorization=wrong)[0] == 401
        now = StreamState(Snapshot(batch=0), {})
        server.view.set_running(lambda: now)
        assert server.get(f"{root}/ready")[:2] == (200, b"OK")
        for path in ("/", "/version", "/endpoints", "/metrics", "/ping/", "/x/ping", "/x/ready"):
            assert server.get(root + path)[0] == 401
        # It is another path, which may be a stream's.
        assert server.get("/benthos%2Fping")[0] == 401


def hashed(algorithm: str, salt: bytes = b"salty") -> bytes:
    if algorithm == "bcrypt":
        return bcrypt.hashpw(b"sesame", bcrypt.gensalt(4))
    if algorithm == "argon2":
        return PasswordHasher(1, 8, 1).hash("sesame").encode()
    if algorithm == "scrypt":
        return hashlib.scrypt(b"sesame", salt=salt, n=32768, r=8, p=1, maxmem=1 << 26, dklen=32)
    return hashlib.new(algorithm, b"sesame").digest()


@pytest.mark.parametrize("algorithm", ["md5", "sha256", "bcrypt", "scrypt", "argon2"])
def test_every_kind_of_hash_is_known(algorithm: str) -> None:
    from streamer.service.access.auth import BasicAuth

    section = {
        "username": "me",
        "password_hash": base64.b64encode(hashed(algorithm)).decode(),
        "salt": base64.b64encode(b"salty").decode(),
        "algorithm": algorithm,
        "realm": "r",
    }
    auth = BasicAuth(section)
    for password, allowed in ((b"sesame", True), (b"open", False), (b"x" * 200, False)):
        header = "Basic " + base64.b64encode(b"me:" + password).decode()
        assert auth.allows(header) is allowed


def test_tokens_let_programs_in_beside_the_user_and_say_whose_they_are() -> None:
    digest = base64.b64encode(hashlib.sha256(b"long and random").digest()).decode()
    password = base64.b64encode(hashlib.sha256(b"sesame").digest()).decode()
    bearer = f"bearer_auth: {{ enabled: true, tokens: [ {{ name: ci, token_hash: {digest} }} ] }}"
    basic = f"basic_auth: {{ enabled: true, username: me, password_hash: {password} }}"
    user = "Basic " + base64.b64encode(b"me:sesame").decode()
    for section, users in ((bearer, 401), (f"{bearer}, {basic}", 200)):
        with serving(section) as server:
            assert server.get("/version")[0] == 401
            assert server.get("/version", Authorization="Bearer long and random")[0] == 200
            for wrong in ("long and randoM", "", digest, "long and random "[:-2]):
                assert server.get("/version", Authorization=f"Bearer {wrong}")[0] == 401
            for _ in range(2):
                assert server.get("/version", Authorization=user)[0] == users
    access = Authenticator(parse_config(f"http: {{ {bearer} }}", env={}).http)
    assert access.authenticate("bearer long and random") == "ci"


def test_a_password_that_was_right_is_known_for_a_while_and_no_other_one_is() -> None:
    password = base64.b64encode(hashlib.sha256(b"sesame").digest()).decode()
    section = f"basic_auth: {{ enabled: true, username: me, password_hash: {password} }}"
    access = Authenticator(parse_config(f"http: {{ {section} }}", env={}).http)
    right, wrong = (
        "Basic " + base64.b64encode(given).decode() for given in (b"me:sesame", b"me:sesam")
    )
    assert access.recent_author(right) is None
    assert (access.authenticate(right), access.authenticate(wrong)) == ("me", None)
    assert (access.recent_author(right), access.recent_author(wrong)) == ("me", None)


def test_pages_of_allowed_origins_may_read_answers() -> None:
    with serving("cors: { enabled: true, allowed_origins: [http://a, http://b] }") as server:
        for origin in ("http://a", "http://b"):
            code, _, headers = server.get("/ping", Origin=origin)
            assert (code, headers["Access-Control-Allow-Origin"]) == (200, origin)
        assert server.get("/ping", Origin="http://c")[2]["Access-Control-Allow-Origin"] is None
        asks = {"Access_Control_Request_Method": "POST", "Origin": "http://a"}
        code, _, headers = server.get("/version", "OPTIONS", **asks)
        assert (code, headers["Access-Control-Allow-Origin"]) == (200, "http://a")
        assert "POST" in headers["Access-Control-Allow-Methods"]
    with serving("cors: { enabled: true, allowed_origins: ['*'] }") as server:
        assert server.get("/ping", Origin="http://x")[2]["Access-Control-Allow-Origin"] == "*"
    with serving() as server:
        assert server.get("/ping", Origin="http://a")[2]["Access-Control-Allow-Origin"] is None


def test_a_name_that_this_machine_does_not_have_is_refused_on_loopback() -> None:
    with serving() as server:
        assert server.get("/ping", Host="evil.example")[0] == 403
        assert server.get("/ping", Host="localhost:1")[0] == 200


def test_debugging_paths_are_there_when_asked_for_and_tell_no_secrets() -> None:
    digest = base64.b64encode(b"a-hash-of-a-password").decode()
    rest = STREAM + "spark: { conf: { spark.some.password: hunter22 } }\n"
    fields = f"debug_endpoints: true, basic_auth: {{ password_hash: {digest} }}"
    with serving(fields, rest) as server:
        for path in ("/debug/config/yaml", "/debug/config/json", "/debug/stack"):
            code, body, _ = server.get(path)
            assert code == 200 and path in server.json("/endpoints")
            assert digest.encode() not in body and b"hunter22" not in body
        assert server.json("/debug/config/json")["input"]["label"] == "in"
        assert b"test_debugging_paths" in server.get("/debug/stack")[1]
    with serving(rest=rest) as server:
        assert server.get("/debug/config/yaml")[0] == 404


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        view = StreamView(parse_config(f"http: {{ address: '{address}' }}", env={}))
        with pytest.raises(StreamerError) as raised:
            HttpServer.for_stream(view)
    assert str(raised.value) == (
        f"cannot listen on {address}: address already in use; "
        "set http.address to another one, or http.enabled to false"
    )


def test_a_certificate_gives_https(tmp_path: Path) -> None:
    certificate(tmp_path)
    with serving(f"cert_file: {tmp_path}/cert.pem, key_file: {tmp_path}/key.pem") as server:
        assert server.url.startswith("https://127.0.0.1:")
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        url = server.url.replace("127.0.0.1", "localhost")
        with urllib.request.urlopen(f"{url}/ping", timeout=10, context=context) as answer:
            assert answer.read() == b"pong"


def test_a_certificate_that_is_of_no_use_is_named(tmp_path: Path) -> None:
    certificate(tmp_path)
    (tmp_path / "other.pem").write_text("no key")
    for key in ("gone.pem", "other.pem"):
        fields = f"cert_file: {tmp_path}/cert.pem, key_file: {tmp_path}/{key}"
        with (
            pytest.raises(StreamerError, match=rf"http\.cert_file .*cert\.pem .*{key}: "),
            serving(fields),
        ):
            pass
