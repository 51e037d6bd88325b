"""The `http_client` input against real servers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.components.inputs.receiving import receiving
from tests.servers.http import Asked, Reply, http_server


def client_of(url: str, more: str = "") -> str:
    fields = f"url: '{url}', retries: 0{more}"
    return f"input: {{http_client: {{{fields}}}}}"


def test_pages_are_asked_for_by_what_was_answered_before(tmp_path):
    def answers(asked: Asked) -> Reply:
        page = int(asked.path.rpartition("=")[2] or 1)
        return Reply(body=b'{"page":%d}' % page if page <= 3 else b"")

    with http_server(answers) as server:
        url = server.url + '/items?page=${! this.page.or(0) + 1 | "" }'
        more = ", payload: 'after ${! this.page | 0 }', headers: {X-Seen: '${! this.page | 0 }'}"
        with receiving(tmp_path, client_of(url, more)) as it:
            assert it.wait(3) == [b'{"page":1}', b'{"page":2}', b'{"page":3}']
    assert [one.path for one in server.asked[:3]] == [
        "/items?page=1",
        "/items?page=2",
        "/items?page=3",
    ]
    assert server.bodies[:3] == [b"after 0", b"after 1", b"after 2"]
    assert server.asked[2].headers["x-seen"] == "2" and server.asked[0].method == "GET"


def test_an_answer_is_asked_for_again_after_one_that_failed(tmp_path):
    replies = [Reply(500, b"no"), Reply(200, b"yes")]

    def answers(asked: Asked) -> Reply:
        return replies.pop(0) if len(replies) > 1 else replies[0]

    with (
        http_server(answers) as server,
        receiving(tmp_path, client_of(server.url)) as it,
    ):
        assert it.wait(2)[:2] == [b"yes", b"yes"]
        assert "unexpected response code (500)" in it.lodged.log[0][1]


def test_the_parts_of_an_answer_are_a_batch(tmp_path):
    body = b"--x\r\n\r\none\r\n--x\r\n\r\ntwo\r\n--x--\r\n"
    reply = Reply(body=body, headers={"Content-Type": "multipart/mixed; boundary=x"})
    with (
        http_server(lambda asked: reply) as server,
        receiving(tmp_path, client_of(server.url)) as it,
    ):
        assert it.wait(2)[:2] == [b"one", b"two"]


@contextmanager
def streaming(serve: Callable[[socket.socket, bytes, int], None]) -> Iterator[str]:
    """Run a server of answers that go on: `serve` has a connection, its request and a number."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)

        def run() -> None:
            number = 0
            while not over.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.settimeout(60)
                    asked = b""
                    while b"\r\n\r\n" not in asked:
                        asked += connection.recv(1 << 16)
                    serve(connection, asked, number)
                number += 1

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/feed"
        finally:
            over.set()
            thread.join(30)


HEAD = b"HTTP/1.1 200 OK\r\nX-Feed: f%d\r\nConnection: close\r\n\r\n"


def test_an_answer_that_goes_on_is_read_as_it_comes_and_asked_for_again(tmp_path):
    more_wanted = threading.Event()
    asked: list[bytes] = []

    def serve(connection: socket.socket, request: bytes, number: int) -> None:
        asked.append(request)
        if number > 1:
            return
        connection.sendall(HEAD % number + b"a%d\n\nb" % number)
        assert more_wanted.wait(60)
        connection.sendall(b"%d\nc" % number)

    with streaming(serve) as url:
        more = ", stream: {enabled: true}, headers: {X-Last: '${! content() | \"none\" }'}"
        with receiving(tmp_path, client_of(url, more)) as it:
            # The second line is there before the answer has ended.
            assert it.wait(1) == [b"a0"]
            more_wanted.set()
            assert it.wait(6) == [b"a0", b"b0", b"c", b"a1", b"b1", b"c"]
    assert b"X-Last: c\r\n" in asked[1]


def test_the_input_ends_with_an_answer_that_is_not_asked_for_again(tmp_path):
    def serve(connection: socket.socket, request: bytes, number: int) -> None:
        connection.sendall(HEAD % number + b"[1, 2")
        connection.sendall(b", 3]")

    stream = ", stream: {enabled: true, reconnect: false, scanner: {json_array: {}}}"
    with streaming(serve) as url, receiving(tmp_path, client_of(url, stream)) as it:
        assert it.wait_for_end() == [b"1", b"2", b"3"]
