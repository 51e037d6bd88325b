"""Servers that take a connection and say nothing, or that say they have more than there can be."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.connectors.redis.client import own_client
from streamer.connectors.redis.errors import RedisError, redis_errors
from streamer.connectors.spool import connection_state
from streamer.connectors.sql import mysql
from streamer.engine.driver.input_host import InputHost
from streamer.sdk.input.input_context import open_input
from tests.components.inputs.reading import built
from tests.components.inputs.rooms import lodging
from tests.servers.hostile import Serve, dripping, raw_server, silent
from tests.slowness import is_within


def _until(true: Callable[[], Any], patience: float = 10.0) -> None:
    until = time.monotonic() + patience
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


INPUTS = {
    "websocket": "websocket: {{url: 'ws://{0}/x'}}",
    "socket with TLS": "socket: {{network: tcp, address: '{0}', tls: {{enabled: true}}}}",
    "redis_list": "redis_list: {{url: 'redis://{0}', key: a}}",
    "redis_streams": (
        "redis_streams: {{url: 'redis://{0}', streams: [a], client_id: a, consumer_group: b}}"
    ),
    "redis_pubsub": "redis_pubsub: {{url: 'redis://{0}', channels: [a]}}",
    "mqtt": "mqtt: {{urls: ['tcp://{0}'], topics: [a], client_id: a}}",
    "http_client that streams": "http_client: {{url: 'http://{0}', stream: {{enabled: true}}}}",
    "http_client": "http_client: {{url: 'http://{0}', timeout: 400ms, retries: 0}}",
}


@pytest.mark.parametrize("config", INPUTS.values(), ids=INPUTS)
def test_an_input_says_in_state_and_log_what_it_waits_for_and_since_when(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamer.components.inputs import socket as socket_input
    from streamer.components.inputs import websocket
    from streamer.connectors.redis import input_base

    for module in (connection_state, socket_input, websocket):
        monkeypatch.setattr(module, "GREETING_TIMEOUT_S", 0.4)
    monkeypatch.setattr(input_base, "_REPLY_MARGIN_S", 0.4)
    with raw_server(silent) as address, lodging(tmp_path / "spool") as lodged:
        open_input(built(f"input: {{{config.format(address)}}}"), lodged.room)
        house: InputHost = lodged.house
        _until(lambda: house.waiting_text)
        assert "; waiting since 20" in house.waiting_text
        _until(lambda: any(level in ("WARN", "ERROR") for level, _ in lodged.log))


def test_what_answers_is_not_waited_for_any_more(tmp_path: Path) -> None:
    with lodging(tmp_path / "spool") as lodged:
        one = connection_state.ConnectionState(lodged.room, "redis")
        one.set_failed("connection refused")
        first = lodged.house.waiting_text
        one.set_failed("connection reset")
        assert first.startswith("redis: connection refused; waiting since ")
        # Since when is that of the first failure.
        assert lodged.house.waiting_text.partition(";")[2] == first.partition(";")[2]
        one.set_connected()
        assert lodged.house.waiting_text == ""


def test_mysql_is_given_ten_seconds_to_its_greeting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql, "_GREETING_TIMEOUT_S", 0.4)
    with raw_server(silent) as address:
        engine = mysql.MysqlDriver().engine(f"root:x@tcp({address})/db")
        began = time.monotonic()
        with pytest.raises(Exception, match="Lost connection to MySQL server"):
            engine.connect()
        assert is_within(5, time.monotonic() - began)


def _client(address: str, patience: float, more: str = "") -> Any:
    text = f"input: {{redis_list: {{url: 'redis://{address}', key: a, client_name: ''{more}}}}}"
    return own_client(parse_config(text, env={}).input.config, patience)


def _replying(reply: bytes, more: bytes) -> Serve:
    def serve(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(1 << 16)
        connection.sendall(reply)
        while more and not over.is_set():
            connection.sendall(more)

    return serve


@pytest.mark.parametrize(
    ("reply", "more", "said"),
    [
        (b"$999999999999\r\n", b"x" * (1 << 20), "bytes or more"),
        (b"*999999999\r\n", b":1\r\n" * 10_000, "elements"),
        (b"+", b"x" * (1 << 20), "a line without an end"),
        (b"*1\r\n" * 50_000, b"", "arrays in each other"),
    ],
    ids=["a text", "an array", "a line", "arrays in arrays"],
)
def test_a_reply_of_redis_has_a_bound(reply: bytes, more: bytes, said: str) -> None:
    with (
        raw_server(_replying(reply, more)) as address,
        closing(_client(address, 5.0)) as client,
        pytest.raises(RedisError, match=said),
        redis_errors(),
    ):
        client.execute_command("GET", "a")


BOMB = b"$999999999999\r\n"


@pytest.mark.parametrize(
    ("more", "first"),
    [
        (", kind: cluster", b""),
        (", kind: failover, master: m", b""),
        (", kind: failover, master: m", b"*2\r\n$4\r\nname\r\n"),
    ],
    ids=["a node of a cluster", "a sentinel", "a sentinel, within its list"],
)
def test_replies_of_clusters_and_sentinels_have_bounds(more: str, first: bytes) -> None:
    with (
        raw_server(_replying(first + BOMB, b"x" * (1 << 20))) as address,
        pytest.raises(Exception) as caught,
        closing(_client(address, 5.0, more)) as client,
    ):
        client.execute_command("GET", "a")
    chain = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert "bytes or more" in " ".join(map(str, chain)), chain


def test_a_reply_of_redis_that_drips_ends_with_its_time() -> None:
    began = time.monotonic()
    with (
        raw_server(dripping(b"$1000\r\n" + b"x" * 1000, 0.1)) as address,
        closing(_client(address, 0.4)) as client,
        pytest.raises(RedisError, match="Timeout reading from socket"),
        redis_errors(),
    ):
        client.execute_command("GET", "a")
    assert is_within(5, time.monotonic() - began)


def test_a_redis_that_says_nothing_is_asked_once() -> None:
    began = time.monotonic()
    with (
        raw_server(silent) as address,
        closing(_client(address, 0.8)) as client,
        pytest.raises(RedisError, match="Timeout"),
        redis_errors(),
    ):
        client.execute_command("GET", "a")
    assert is_within(2, time.monotonic() - began)
