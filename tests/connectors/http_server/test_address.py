"""Addresses: how they are written, and whether they can be listened on."""

from __future__ import annotations

import socket

import pytest

from streamer.connectors.http_server.address import check_free_address, split_address
from streamer.core.errors import StreamerError


def test_hosts_and_ports_are_parted() -> None:
    assert split_address("127.0.0.1:4195") == ("127.0.0.1", 4195)
    assert split_address(":0") == (None, 0)
    assert split_address("[::1]:80") == ("::1", 80)


@pytest.mark.parametrize("address", ["", "4195", "::1:80", "host:70000", "host:a"])
def test_what_is_no_address_is_said(address: str) -> None:
    with pytest.raises(ValueError, match=r"expected host:port, such as 127\.0\.0\.1:4195"):
        split_address(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", None])
def test_a_free_address_is_left_free(host: str | None) -> None:
    check_free_address(host, 0, "try another")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for _ in range(2):
        check_free_address(host, port, "try another")


def test_one_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(StreamerError) as e:
            check_free_address("127.0.0.1", port, "try another")
    assert str(e.value) == (
        f"cannot listen on 127.0.0.1:{port}: address already in use; try another"
    )


def test_one_of_another_machine_is_an_error() -> None:
    with pytest.raises(StreamerError, match=r"192\.0\.2\.1:80: cannot assign requested address"):
        check_free_address("192.0.2.1", 80, "try another")
