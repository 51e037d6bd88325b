"""A config that comes by API gets nothing of the service's machine, whatever it is made of.

One service, started without `--allow-local` and `--allow-programs`; each door is tried by a config
of its own, and what gets past the check is looked at where it arrives.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.faults.service import Service, service

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

SECRET = "hunter2-of-the-environment"
IN_FILE = "hunter2-of-a-file"


class Received:
    """A server that keeps what is posted to it."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        of = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                of.bodies.append((self.path, self.rfile.read(length)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def of(self, path: str) -> list[bytes]:
        return [body for at, body in self.bodies if at == path]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("machine")
    (made / "secret").write_text(IN_FILE)
    return made


@pytest.fixture(scope="module")
def running(place: Path) -> Iterator[Service]:
    os.environ["TOPSECRET"] = SECRET
    try:
        with service(place / "service", local=False) as made:
            made.wait_running()
            yield made
    finally:
        del os.environ["TOPSECRET"]


@pytest.fixture(scope="module")
def received() -> Iterator[Received]:
    made = Received()
    yield made
    made.server.shutdown()
    made.server.server_close()


GENERATE = "input: { generate: { mapping: root = 1, count: 1 } }\n"
DROP = "output: { drop: {} }\n"


def inputs(place: Path) -> dict[str, str]:
    at = place
    return {
        "file": f"file: {{ paths: [ {at}/secret ] }}",
        "csv": f"csv: {{ paths: [ {at}/secret ] }}",
        "parquet": f"parquet: {{ paths: [ {at}/secret ] }}",
        "subprocess": f"subprocess: {{ name: touch, args: [ {at}/made ] }}",
        "dynamic": "dynamic: {}",
        "socket": f"socket: {{ network: unix, address: {at}/listening }}",
        "socket_server": f"socket_server: {{ network: unix, address: {at}/made }}",
        "datagrams": f"socket_server: {{ network: unixgram, address: {at}/made }}",
        "certificate": f"http_server: {{ address: '127.0.0.1:0', cert_file: {at}/secret, "
        f"key_file: {at}/secret }}",
        "sqlite": f"sql_raw: {{ driver: sqlite, dsn: {at}/made, query: select 1 }}",
        "postgres": "sql_raw: { driver: postgres, dsn: 'host=/run user=u password=p', query: x }",
        "passfile": "sql_raw: { driver: postgres, query: x, "
        f"dsn: 'postgres://u:p@127.0.0.1/n?passfile={at}/secret' }}",
        "mysql": f"sql_raw: {{ driver: mysql, dsn: 'u:p@unix({at}/listening)/n', query: x }}",
        "init": "sql_raw: { driver: mysql, dsn: 'u:p@tcp(127.0.0.1:1)/n', query: x, "
        f"init_files: [ {at}/secret ] }}",
        "key": "http_client: { url: 'http://127.0.0.1:1', jwt: { enabled: true, "
        f"private_key_file: {at}/secret }} }}",
        "nested": f"sequence: {{ inputs: [ {{ file: {{ paths: [ {at}/secret ] }} }} ] }}",
        "env": "generate: { mapping: 'root = env(\"TOPSECRET\")' }",
        "variable": "generate: { mapping: 'root = \"${TOPSECRET}\"' }",
        "import": f"generate: {{ mapping: 'import \"{at}/secret\"' }}",
        "from": f"generate: {{ mapping: 'from \"{at}/secret\"' }}",
    }


def processors(place: Path) -> dict[str, str]:
    at = place
    return {
        "command": "command: { name: '${! content() }' }",
        "subprocess": f"subprocess: {{ name: touch, args: [ {at}/made ] }}",
        "branch": f"branch: {{ processors: [ {{ command: {{ name: touch {at}/made }} }} ] }}",
        "workflow": "workflow: { branches: { a: { processors: [ { command: { name: id } } ] } } }",
        "try": "try: [ { switch: [ { processors: [ { subprocess: { name: id } } ] } ] } ]",
        "avro": f"avro: {{ operator: to_json, schema_path: 'file://{at}/secret' }}",
        "json_schema": f"json_schema: {{ schema_path: 'file://{at}/secret' }}",
        "grok": f"grok: {{ expressions: [ '%{{X}}' ], pattern_paths: [ {at}/secret ] }}",
        "sql": f"sql_raw: {{ driver: sqlite, dsn: 'file:{at}/made', query: select 1 }}",
        "log": "log: { message: '${! env(\"TOPSECRET\") }' }",
        "host": "mapping: root = hostname()",
        "tls": "http: { url: 'https://127.0.0.1:1', tls: { enabled: true, root_cas_file: "
        f"{at}/secret }} }}",
    }


def outputs(place: Path) -> dict[str, str]:
    at = place
    return {
        "file": f"file: {{ path: '{at}/${{! \"made\" }}' }}",
        "subprocess": "subprocess: { name: cat }",
        "dynamic": "dynamic: {}",
        "socket": f"socket: {{ network: unix, address: {at}/listening }}",
        "sql": f"sql_insert: {{ driver: sqlite, dsn: {at}/made, table: t, columns: [ a ], "
        "args_mapping: 'root = [ 1 ]' }",
        "kafka": "kafka: { addresses: [ '127.0.0.1:1' ], topic: t, tls: { enabled: true, "
        f"root_cas_file: {at}/secret }} }}",
        "redis": f"redis_list: {{ url: 'rediss://h', key: k, tls: {{ root_cas_file: {at}/secret }} "
        "}",
        "broker": f"broker: {{ outputs: [ {{ drop: {{}} }}, {{ file: {{ path: {at}/made }} }} ] }}",
        "url": "http_client: { url: 'http://127.0.0.1:1/${! env(\"TOPSECRET\") }' }",
    }


def refused(running: Service, name: str, config: str) -> None:
    answer = running.ask("POST", f"/streams/{name}", config)
    assert answer.status_code == 400, (name, answer.text)
    assert "configs that come by API" in answer.text, (name, answer.text)
    assert SECRET not in answer.text and IN_FILE not in answer.text


def test_no_component_opens_anything_of_the_machine(running: Service, place: Path) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(place / "listening"))
    listening.listen()
    listening.settimeout(0.5)
    before = sorted(place.iterdir())
    for name, text in inputs(place).items():
        refused(running, f"in-{name}", f"input: {{ {text} }}\n{DROP}")
    for name, text in processors(place).items():
        pipeline = f"pipeline: {{ processors: [ {{ {text} }} ] }}\n"
        refused(running, f"pr-{name}", GENERATE + pipeline + DROP)
    for name, text in outputs(place).items():
        refused(running, f"out-{name}", f"{GENERATE}output: {{ {text} }}\n")
    caches = f"cache_resources: [ {{ label: c, file: {{ directory: {place} }} }} ]\n"
    get = "pipeline: { processors: [ { cache: { resource: c, operator: get, key: secret } } ] }\n"
    refused(running, "cache", GENERATE + caches + get + DROP)
    label = f"file: {{ paths: [ {place}/secret ] }}"
    refused(
        running, "own", f"input: {{ resource: r }}\ninput_resources: [ {{ label: r, {label} }} ]"
    )
    for kind, text in (("input", label), ("cache", f"file: {{ directory: {place} }}")):
        answer = running.ask("POST", f"/resources/{kind}/r", text)
        assert answer.status_code == 400 and "configs that come by API" in answer.text
    with pytest.raises(TimeoutError):
        listening.accept()
    listening.close()
    assert sorted(place.iterdir()) == before
    assert running.streams() == {}


def test_what_a_message_says_is_run_sees_nothing(
    running: Service, received: Received, place: Path
) -> None:
    """A text that becomes code in a worker, as attack 1 was: `bloblang()` of the content."""
    reads = {
        "e": 'env("TOPSECRET")',
        "f": f'file("{place}/secret").string()',
        "r": f'file_rel("{place}/secret").string()',
        "h": "hostname()",
        "c": "content()",
        "m": 'metadata("x")',
        "i": f'import "{place}/secret"',
    }
    texts = {name: text if name == "i" else f"root = {text}" for name, text in reads.items()}
    made = "\n".join(
        f"root.{name} = this.bloblang(this.texts.{name}).catch(err -> err)" for name in texts
    )
    config = f"""\
input:
  generate:
    count: 1
    mapping: |
      root.texts = {json.dumps(texts)}
      meta x = "outer"
pipeline:
  processors:
    - mapping: |
        {made.replace(chr(10), chr(10) + "        ")}
output:
  http_client: {{ url: "{received.url}/sandbox" }}
"""
    assert running.ask("POST", "/streams/dyn", config).status_code == 200
    running.wait_for(lambda: bool(received.of("/sandbox")), 120, "for the message")
    body = received.of("/sandbox")[0]
    found = json.loads(body)
    assert SECRET.encode() not in body and IN_FILE.encode() not in body
    assert socket.gethostname() not in (found.get("h") or "")
    assert found.keys() == texts.keys()
    assert all(
        "switched off" in str(found[name]) or "outer" not in str(found[name]) for name in found
    )
    running.ask("DELETE", "/streams/dyn")
