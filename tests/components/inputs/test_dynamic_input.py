"""The `dynamic` input: inputs come and go over the stream's own HTTP server."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from streamer.config import parse_config
from streamer.sdk.input.input_context import open_input
from streamer.service.api.server import HttpServer
from streamer.service.monitoring.stream_view import StreamView
from tests.components.inputs.reading import built
from tests.components.inputs.receiving import Receiving
from tests.components.inputs.rooms import lodging


class Asking:
    """An opened input, and the server that it is changed by."""

    def __init__(self, it: Receiving, url: str) -> None:
        self.it = it
        self._url = url

    def ask(
        self, path: str, verb: str = "GET", body: str | None = None, **headers: str
    ) -> tuple[int, str]:
        request = urllib.request.Request(
            self._url + path, None if body is None else body.encode(), headers, method=verb
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def wait(self, what: Callable[[], bool]) -> None:
        until = time.monotonic() + 60
        while not what():
            assert time.monotonic() < until, self.it.lodged.log
            self.it.look()
            time.sleep(0.01)


@contextmanager
def dynamic(
    tmp_path: Path, inputs: str = "{}", more: str = "", known: object = None
) -> Iterator[Asking]:
    view = StreamView(parse_config("http: {address: '127.0.0.1:0'}"))
    server = HttpServer.for_stream(view)
    try:
        with lodging(tmp_path / "spool", known) as lodged:
            lodged.house.endpoints = view.endpoints
            source = built(f"input: {{dynamic: {{inputs: {inputs}{more}}}}}")
            yield Asking(Receiving(lodged, open_input(source, lodged.room)), server.url)
    finally:
        server.stop()


def every(text: str) -> str:
    return f'{{generate: {{interval: 10ms, mapping: root = "{text}"}}}}'


def test_inputs_are_added_changed_and_removed(tmp_path):
    with dynamic(tmp_path, f"{{one: {every('a')}}}") as it:
        it.wait(lambda: b"a" in it.it.raws)
        assert it.ask("/inputs/two", "POST", every("b")) == (200, "")
        it.wait(lambda: b"b" in it.it.raws)
        assert it.ask("/inputs/two", "POST", every("c")) == (200, "")
        it.wait(lambda: b"c" in it.it.raws)
        listed = json.loads(it.ask("/inputs")[1])
        assert sorted(listed) == ["one", "two"]
        assert listed["two"]["config"]["generate"]["mapping"] == 'root = "c"'
        assert it.ask("/inputs/two")[1] == listed["two"]["config_raw"]
        assert it.ask("/inputs/one/uptime")[1].endswith("s")
        assert it.ask("/inputs/two", "DELETE") == (200, "")
        # What it gave until then is there; nothing follows.
        it.it.look()
        before = it.it.raws.count(b"c")
        seen = it.it.raws.count(b"a")
        it.wait(lambda: it.it.raws.count(b"a") > seen + 3)
        assert it.it.raws.count(b"c") == before
        assert it.ask("/inputs/two") == (404, "Dynamic component 'two' is not active\n")
        assert it.ask("/inputs/two/uptime")[0] == 404


def test_an_input_that_has_ended_is_stopped_and_the_others_go_on(tmp_path):
    ends = '{subprocess: {name: echo, args: [x]}, processors: [mapping: root = content() + "!"]}'
    with dynamic(tmp_path, f"{{ends: {ends}, goes: {every('a')}}}", ", prefix: my") as it:
        it.wait(lambda: b"x!" in it.it.raws)
        it.wait(lambda: it.ask("/my/inputs/ends/uptime")[1] == "stopped")
        assert not it.it.look()


def test_a_config_that_is_not_right_is_refused(tmp_path):
    with dynamic(tmp_path) as it:
        status, text = it.ask("/inputs/x", "POST", "generat: {}")
        assert status == 502 and text.startswith("Error: ") and "generate" in text
        assert it.ask("/inputs/x", "POST", "]")[0] == 502
        assert it.ask("/inputs/x", "PUT", "{}")[0] == 502
        assert it.ask("/inputs/x")[0] == 404


def test_inputs_of_the_config_go_on_where_they_were(tmp_path):
    (tmp_path / "in").write_text("1\n2\n")
    files = f"{{one: {{file: {{paths: [{tmp_path}/in]}}}}}}"
    with dynamic(tmp_path, files) as it:
        it.wait(lambda: it.it.raws == [b"1", b"2"])
        known = it.it.lodged.house.remembered
        threads = it.it.lodged.house.threads
    for thread in threads:
        thread.join(60)
    with open(tmp_path / "in", "a") as more:
        more.write("3\n")
    with dynamic(tmp_path, files, known=known) as it:
        it.wait(lambda: it.it.raws == [b"1", b"2", b"3"])


def test_pages_of_other_sites_change_nothing(tmp_path):
    with dynamic(tmp_path) as it:
        status, text = it.ask("/inputs/x", "POST", every("a"), Origin="http://evil.example")
        assert (status, text) == (403, "Pages of other sites may not change this program\n")
        assert it.ask("/inputs")[1] == "{}"


def test_secrets_are_not_shown(tmp_path):
    with dynamic(tmp_path) as it:
        auth = "basic_auth: {enabled: true, username: u, password: hidden}"
        config = f"{{websocket: {{url: 'ws://127.0.0.1:1/x', {auth}}}}}"
        assert it.ask("/inputs/x", "POST", config)[0] == 200
        text = it.ask("/inputs/x")[1]
        assert "ws://127.0.0.1:1/x" in text and "hidden" not in text
