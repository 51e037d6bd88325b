"""The page's server over real HTTP on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from streamer.cli.blobl.editor_state import EditorState
from streamer.cli.blobl.server import MAX_BODY_BYTES, ServerSettings, make_application
from streamer.cli.main import invoke
from streamer.service.access.origin_check import refusal_reason, server_names

ROOT = Path(__file__).parents[3]
JSON = {"Content-Type": "application/json"}


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def ask(
    port: int, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> Reply:
    data = json.dumps(body) if body is not None and not isinstance(body, bytes) else body
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, data, {} if headers is None else headers)
        response = connection.getresponse()
        return Reply(response.status, dict(response.headers), response.read().decode())


@contextmanager
def serving(seconds: float = 2.0, impure: bool = False) -> Iterator[int]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    drafts = EditorState('root = "</script>"', '{"a":"&lt;"}')
    app = make_application(ServerSettings("127.0.0.1", 0, impure, seconds), drafts)
    runner = web.AppRunner(app, shutdown_timeout=0)

    async def start() -> int:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(20)
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving() as port:
        yield port


Execute = Callable[..., Any]


@pytest.fixture
def execute(port: int) -> Execute:
    def run(mapping: str, text: str = '{"a":1}', **more: object) -> Any:
        body = {"mapping": mapping, "input": text, **more}
        reply = ask(port, "POST", "/execute", body, JSON)
        assert reply.status == 200, reply.text
        return reply.json

    return run


def test_a_mapping_is_applied_to_the_input(execute: Execute) -> None:
    assert execute("root.b = this.a + 1") == {
        "parse_error": "",
        "mapping_error": "",
        "result": '{\n  "b": 2\n}',
        "results": [{"output": '{\n  "b": 2\n}'}],
    }


def test_what_becomes_of_several_documents_is_told_one_by_one(execute: Execute) -> None:
    answer = execute('root = if this.a == 1 { deleted() }\nmeta k = "v"', '{"a":1}\n{"a":2}\n')
    meta = '{\n  "k": "v"\n}'
    assert answer["results"] == [{"deleted": True}, {"output": '{\n  "a": 2\n}', "metadata": meta}]


def test_text_is_taken_as_it_is(execute: Execute) -> None:
    answer = execute("root = this.uppercase()", "no\njson", raw=True)
    assert answer["results"] == [{"output": "NO\nJSON"}]
    assert execute("let x = 1", "no\njson")["results"] == [{"output": "no\njson"}]


def test_a_failure_is_told_with_its_line(execute: Execute) -> None:
    answer = execute("root = this\nroot.b = this.a.uppercase()")
    (result,) = answer["results"]
    assert result["problem"]["line"] == 2
    assert result["problem"]["text"] == answer["mapping_error"]
    assert "(line 2): expected string value, got number" in answer["mapping_error"]


@pytest.mark.parametrize(
    ("mapping", "line", "word"),
    [
        ("root = this\nroot.b = nope(1)", 2, "nope"),
        ("root = this.a.uppercaze()", 1, "uppercaze"),
        ("root = this.a.uppercaze().uppercaze()", 1, "uppercaze"),
        ('root = env("HOME") + "x"', 1, "env"),
        ("root.a = ", 1, "="),
        ("", 1, ""),
        ("root = this.a +\n", 1, "+"),
    ],
)
def test_a_mapping_that_cannot_be_read_is_told_with_the_word_that_is_meant(
    execute: Execute, mapping: str, line: int, word: str
) -> None:
    answer = execute(mapping)
    problem = answer["problem"]
    text = (mapping + "\n").split("\n")[problem["line"] - 1]
    start = problem["column"] - 1
    assert (problem["line"], text[start : start + problem["length"]]) == (line, word)
    assert answer["parse_error"].startswith("failed to parse mapping: line ")
    assert "results" not in answer


@pytest.mark.parametrize("mapping", ['root = env("HOME")', 'root = file("/etc/hostname")'])
def test_mappings_cannot_look_outside_unless_they_may(execute: Execute, mapping: str) -> None:
    assert "--no-impure" in execute(mapping)["problem"]["text"]
    assert "--no-impure" in execute(f"root = this.bloblang({mapping!r})", "{}")[
        "mapping_error"
    ] or ("problem" in execute(f"root = this.bloblang({mapping!r})"))


def test_mappings_may_look_outside_when_they_are_let(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEN_OUTSIDE", "yes")
    with serving(impure=True) as port:
        body = {"mapping": 'root = env("SEEN_OUTSIDE")', "input": "{}"}
        assert ask(port, "POST", "/execute", body, JSON).json["result"] == "yes"


ENDLESS = "root = range(0, 3000).map_each(a -> range(0, 3000).map_each(b -> range(0, 3000).sum()))"


def test_a_mapping_that_takes_too_long_is_stopped() -> None:
    with serving(seconds=0.5) as port:
        reply = ask(port, "POST", "/execute", {"mapping": ENDLESS, "input": "{}"}, JSON)
        problem = reply.json["problem"]
        assert problem["text"] == "the mapping was stopped after 0.5 seconds; give it less to do"


def test_long_results_are_cut(execute: Execute) -> None:
    answer = execute('root = "x".repeat(3000000)')
    assert answer["cut"]
    assert len(answer["result"]) == 1 << 20


@pytest.mark.parametrize(
    ("headers", "body", "status", "said"),
    [
        (JSON, b"nope", 400, "the body is not JSON"),
        (JSON, [], 400, "expected an object with the fields mapping and input"),
        (JSON, {"mapping": "", "input": 1}, 400, "expected str in the field input"),
        (JSON, {"mapping": "", "input": "", "raw": 1}, 400, "expected bool in the field raw"),
        ({"Content-Type": "text/plain"}, {}, 415, "expected Content-Type: application/json"),
        (JSON, b" " * (MAX_BODY_BYTES + 1), 413, f"the body has more than {MAX_BODY_BYTES} bytes"),
    ],
)
def test_a_wrong_request_is_refused_with_a_reason(
    port: int, headers: dict[str, str], body: object, status: int, said: str
) -> None:
    reply = ask(port, "POST", "/execute", body, headers)
    assert reply.status == status
    assert said in reply.json["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:4195"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "[::1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_of_other_pages_are_refused(port: int, headers: dict[str, str]) -> None:
    for method, path in (("GET", "/"), ("POST", "/execute"), ("OPTIONS", "/execute")):
        reply = ask(port, method, path, {"mapping": "", "input": ""}, {**JSON, **headers})
        assert reply.status == 403
        assert "root" not in reply.text
        assert not [name for name in reply.headers if name.startswith("Access-Control")]


def test_requests_of_its_own_page_are_taken(port: int) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        own = f"{host}:{port}"
        headers = {"Host": own, "Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"}
        assert ask(port, "GET", "/", headers=headers).status == 200


def test_the_names_of_a_server_are_its_own() -> None:
    allowed = server_names("Box.example")
    assert refusal_reason({"Host": "box.example:1"}, allowed) is None
    assert refusal_reason({"Host": f"{socket.gethostname()}:1"}, allowed) is None
    assert refusal_reason({}, allowed) is not None


def test_the_page_loads_nothing_and_runs_no_script_but_its_own(port: int) -> None:
    replies = [ask(port, "GET", "/") for _ in range(2)]
    nonces = [
        re.findall(r"nonce-([\w-]+)", one.headers["Content-Security-Policy"]) for one in replies
    ]
    assert all(len(found) == 2 and len(set(found)) == 1 for found in nonces)
    assert nonces[0] != nonces[1]
    page = replies[0].text
    assert replies[0].headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert replies[0].headers["X-Content-Type-Options"] == "nosniff"
    assert set(re.findall(r'nonce="([^"]*)"', page)) == set(nonces[0])
    assert not re.findall(r"https?://|\bsrc=|@import|url\(|\son\w+=|style=", page)
    assert "{{" not in page


def test_the_page_begins_with_the_drafts_whatever_they_hold() -> None:
    with serving() as port:
        page = ask(port, "GET", "/").text
        start = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
        assert start is not None
        expected = {"mapping": 'root = "</script>"', "input": '{"a":"&lt;"}'}
        assert json.loads(start[1]) == expected
        ask(port, "POST", "/execute", {"mapping": "root = 5", "input": "{}"}, JSON)
        assert "root = 5" in ask(port, "GET", "/").text


@contextmanager
def started(*arguments: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "streamer.cli.main", "blobl", "server", "-p", "0", "-n"]
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.match(r"Serving at: http://127\.0\.0\.1:(\d+) ", line)
        assert found, line
        yield process, int(found[1])
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_edits_are_written_to_the_files_and_a_signal_ends_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "in.json").write_text('{"a":3}')
    (tmp_path / "in.json").chmod(0o640)
    files = ("-m", "new.blobl", "-i", "in.json", "--write")
    with started(*files, cwd=tmp_path) as (process, port):
        page = ask(port, "GET", "/").text
        assert '{\\"a\\":3}' in page and "root = this" in page
        body = {"mapping": "root = this.a\n", "input": '{"a":4}'}
        assert ask(port, "POST", "/execute", body, JSON).json["result"] == "4"
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")
    assert (tmp_path / "new.blobl").read_text() == "root = this.a\n"
    assert (tmp_path / "in.json").read_text() == '{"a":4}'
    assert (tmp_path / "in.json").stat().st_mode & 0o777 == 0o640
    assert len(list(tmp_path.iterdir())) == 2


def test_nothing_is_written_unless_asked_for(tmp_path: Path) -> None:
    (tmp_path / "m.blobl").write_text("root = 1")
    with started("-m", "m.blobl", cwd=tmp_path) as (process, port):
        ask(port, "POST", "/execute", {"mapping": "root = 2", "input": "{}"}, JSON)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert (tmp_path / "m.blobl").read_text() == "root = 1"


def test_a_port_that_is_taken_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert invoke(["blobl", "server", "-n", "-p", str(port)]) == 1
    assert capfd.readouterr().err == (
        f"error: cannot listen on 127.0.0.1:{port}: address already in use; "
        "give another --host or --port\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-m", "/no/such/file"], "failed to read mapping file /no/such/file: no such file"),
        (["-i", "/no/such/file"], "failed to read input file /no/such/file: no such file"),
        (["--write"], "--write needs --mapping-file or --input-file"),
        (["-p", "65536"], "65536 is not in the range"),
    ],
)
def test_a_wrong_call_is_told(
    capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert invoke(["blobl", "server", *arguments]) == 1
    assert said in capfd.readouterr().err
