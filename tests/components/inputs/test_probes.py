"""What `dry-run` asks of inputs that receive: they look without taking anything."""

from __future__ import annotations

import socket

import pytest

from streamer.core.errors import StreamerError
from tests.components.inputs.reading import built


def servers(address: str) -> tuple[str, str]:
    return (
        f"http_server: {{address: '{address}'",
        f"socket_server: {{network: tcp, address: '{address}'",
    )


def test_servers_look_whether_they_could_listen(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for fields in servers(address):
            with pytest.raises(StreamerError, match="cannot listen on .*address already in use"):
                built(f"input: {{{fields}}}}}").probe()
        assert built(f"input: {{socket: {{network: tcp, address: '{address}'}}}}").probe() == (
            f"{address} takes connections"
        )
    for fields in servers(address):
        assert built(f"input: {{{fields}}}}}").probe() == f"{address} can be listened on"
    assert "stream's HTTP server" in built("input: {http_server: {}}").probe()
    path = tmp_path / "s.sock"
    built(f"input: {{socket_server: {{network: unix, address: {path}}}}}").probe()
    assert not path.exists()


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        built(f"input: {{socket: {{network: unix, address: {tmp_path}/no}}}}").probe()
    with pytest.raises(StreamerError, match="there is no command '/no/such'"):
        built("input: {subprocess: {name: /no/such}}").probe()
    assert built("input: {subprocess: {name: sh}}").probe().endswith("/sh")
