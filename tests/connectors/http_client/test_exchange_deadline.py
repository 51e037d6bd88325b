"""One deadline for a whole exchange, for those who need no more than an answer's body."""

from __future__ import annotations

import time

import pytest

from streamer.connectors.formats.schema_text import read_schema
from streamer.connectors.http_client.exchange_deadline import do_exchange
from tests.servers.hostile import Serve, dripping, raw_server, silent
from tests.servers.http import Reply, http_server
from tests.slowness import is_within

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"


@pytest.mark.parametrize(
    "serve",
    [silent, dripping(HEAD, 0.05), dripping(HEAD + b"x" * 1000, 0.05, at_once=len(HEAD))],
    ids=["silent", "head", "body"],
)
def test_an_exchange_ends_with_its_time(serve: Serve) -> None:
    began = time.monotonic()
    with raw_server(serve) as address, pytest.raises(OSError, match="no whole answer within 0.4 s"):
        do_exchange("GET", f"http://{address}/x", 0.4)
    assert is_within(3, time.monotonic() - began)


def test_an_answer_is_its_body_and_an_error_is_one() -> None:
    with http_server(lambda asked: Reply(200, b"body")) as server:
        assert do_exchange("PUT", server.url, 5, [("X-A", "1")], b"sent") == b"body"
    with (
        http_server(lambda asked: Reply(404, b"nothing")) as server,
        pytest.raises(OSError, match="404"),
    ):
        do_exchange("GET", server.url, 5)
    with pytest.raises(OSError, match="refused"):
        do_exchange("GET", "http://me:secret@127.0.0.1:9/", 5)


def test_no_password_of_a_url_is_in_an_error() -> None:
    with pytest.raises(OSError, match="http") as caught:
        do_exchange("GET", "http://me:sesame@127.0.0.1:9/", 5)
    assert "sesame" not in str(caught.value)


def test_a_schema_by_url_is_read_within_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamer.connectors.formats import schema_text

    monkeypatch.setattr(schema_text, "_TIMEOUT_S", 0.4)
    with raw_server(dripping(HEAD, 0.05)) as address, pytest.raises(OSError, match="timed out"):
        read_schema(f"http://{address}/schema.json")
    with http_server(lambda asked: Reply(200, '{"a": "ü"}'.encode())) as server:
        assert read_schema(server.url) == '{"a": "ü"}'
