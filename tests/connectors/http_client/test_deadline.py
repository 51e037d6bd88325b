"""`timeout` is for the whole exchange: a server that sends now and then does not defeat it."""

from __future__ import annotations

import time

import pytest

from streamer.connectors.http_client.errors import HttpError
from streamer.core.message import Message
from tests.components.outputs.scripted import Seen
from tests.connectors.http_client.client import client
from tests.servers.hostile import dripping, raw_server, silent
from tests.servers.http import Reply, http_server

_TIMEOUT_S = 0.4
_ENOUGH_S = 3.0
"""A server that drips as these do would need a minute."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n"


def _error(url: str, more: str = "", body: bytes = b"a") -> str:
    began = time.monotonic()
    fields = f"url: 'http://{url}', timeout: {_TIMEOUT_S}s, retries: 0{more}"
    with pytest.raises(HttpError) as caught:
        client(fields).send([Message(body)], Seen().ex)
    assert time.monotonic() - began < _ENOUGH_S
    return str(caught.value)


def test_a_head_that_drips_ends_with_the_timeout():
    with raw_server(dripping(HEAD, 0.05)) as address:
        assert "timed out while waiting for the answer: it is not whole within 0.4 s" in _error(
            address
        )


def test_a_body_that_drips_ends_with_the_timeout():
    with raw_server(dripping(HEAD + b"x" * 1000, 0.05, at_once=len(HEAD))) as address:
        assert "timed out while reading the body" in _error(address)


def test_a_server_that_reads_no_body_ends_with_the_timeout():
    with raw_server(silent) as address:
        assert "timed out" in _error(address, body=b"x" * (64 << 20))


def test_a_proxy_that_drips_ends_with_the_timeout():
    with raw_server(dripping(HEAD, 0.05)) as address:
        error = _error("127.0.0.1:9/", f", proxy_url: 'http://{address}'")
        assert "timed out" in error


def test_a_token_that_drips_ends_with_the_timeout():
    with raw_server(dripping(HEAD, 0.05)) as address:
        oauth = (
            f", oauth2: {{enabled: true, client_key: a, client_secret: b, "
            f"token_url: 'http://{address}/token'}}"
        )
        assert "timed out" in _error("127.0.0.1:9", oauth)


def test_each_request_has_the_whole_timeout():
    def reply(asked: object) -> Reply:
        time.sleep(0.6 * _TIMEOUT_S)
        return Reply(200, b"ok")

    with http_server(reply) as server:
        asking = client(f"url: '{server.url}', timeout: {_TIMEOUT_S}s, retries: 0")
        for _ in range(4):
            assert asking.send([Message(b"a")], Seen().ex).body == b"ok"
