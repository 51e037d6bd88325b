"""The `socket` and `socket_server` inputs against real sockets."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.errors import ConfigError, StreamerError
from streamer.sdk.input.input_context import open_input
from tests.components.inputs.reading import built
from tests.components.inputs.receiving import receiving
from tests.components.inputs.rooms import lodging
from tests.servers.certificates import certificate


def server_of(tmp_path: Path, network: str, fields: str = "") -> str:
    address = f"{tmp_path}/s.sock" if network.startswith("unix") else "127.0.0.1:0"
    return f"input: {{socket_server: {{network: {network}, address: '{address}'{fields}}}}}"


def host_of(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


@pytest.mark.parametrize("network", ["tcp", "unix"])
def test_each_connection_to_a_server_is_cut_by_itself(tmp_path, network):
    with receiving(tmp_path, server_of(tmp_path, network)) as it:
        address = it.lodged.said("address")

        def connect() -> socket.socket:
            if network == "tcp":
                return socket.create_connection(host_of(address))
            made = socket.socket(socket.AF_UNIX)
            made.connect(address)
            return made

        one, other = connect(), connect()
        one.sendall(b"a1\na")
        other.sendall(b"b1\nb2")
        it.wait(2)
        one.sendall(b"2\n")
        other.close()
        assert sorted(it.wait(4)) == [b"a1", b"a2", b"b1", b"b2"]
        one.close()


@pytest.mark.parametrize("network", ["udp", "unixgram"])
def test_datagrams_are_one_stream(tmp_path, network):
    with receiving(tmp_path, server_of(tmp_path, network)) as it:
        address: Any = it.lodged.said("address")
        family = socket.AF_UNIX
        if network == "udp":
            address, family = host_of(address), socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            for data in (b"1\n", b"2\n3", b"4\n"):
                sender.sendto(data, address)
            assert it.wait(3) == [b"1", b"2", b"34"]


def test_a_server_has_tls_with_a_certificate_of_its_own(tmp_path):
    with receiving(tmp_path, server_of(tmp_path, "tls", ", tls: {self_signed: true}")) as it:
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        plain = socket.create_connection(host_of(it.lodged.said("address")))
        with unchecked.wrap_socket(plain) as secured:
            secured.sendall(b"secret\n")
            assert it.wait(1) == [b"secret"]
        with socket.create_connection(host_of(it.lodged.said("address"))) as plain:
            plain.sendall(b"this is no TLS at all, and is refused\n")
        it.wait(1, lambda: any("Connection dropped" in text for _, text in it.lodged.log))


def test_a_server_with_a_certificate_checks_those_of_clients(tmp_path):
    certificate(tmp_path)
    files = f"cert_file: {tmp_path}/cert.pem, key_file: {tmp_path}/key.pem"
    text = server_of(tmp_path, "tls", f", tls: {{{files}, client_auth: require_valid}}")
    with receiving(tmp_path, text) as it:
        trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        plain = socket.create_connection(host_of(it.lodged.said("address")))
        with pytest.raises(OSError), trusted.wrap_socket(plain, server_hostname="localhost") as s:
            s.sendall(b"who am I\n")
            while s.recv(100):
                pass
            raise OSError("the server has closed the connection")
        it.wait(0, lambda: any("Connection dropped" in text for _, text in it.lodged.log))


def test_a_server_cuts_by_every_scanner(tmp_path):
    with receiving(tmp_path, server_of(tmp_path, "tcp", ", scanner: {chunker: {size: 3}}")) as it:
        with socket.create_connection(host_of(it.lodged.said("address"))) as one:
            one.sendall(b"abcdefgh")
            assert it.wait(2) == [b"abc", b"def"]
        assert it.wait(3) == [b"abc", b"def", b"gh"]


def test_what_a_killed_program_left_of_a_socket_is_in_nobodys_way(tmp_path):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{tmp_path}/s.sock")
    with (
        receiving(tmp_path, server_of(tmp_path, "unix")),
        pytest.raises(StreamerError, match="cannot listen on .*s.sock: address already in use"),
        receiving(tmp_path / "other", server_of(tmp_path, "unix")),
    ):
        pass
    assert not (tmp_path / "s.sock").exists()


def test_the_address_is_told_to_a_cache(tmp_path):
    kept: dict[str, bytes] = {}

    class Kept:
        def set(self, key: str, value: bytes, ttl: int | None, ex: Any) -> None:
            kept[key] = value

    from dataclasses import replace

    source = replace(built(server_of(tmp_path, "tcp")), cache=Kept())
    with lodging(tmp_path / "spool") as lodged:
        open_input(source, lodged.room)
        assert kept == {"socket_server_address": lodged.said("address").encode()}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("network: tls, address: ':1'", "must have cert_file and key_file, or self_signed"),
        (
            "network: tls, address: ':1', tls: {self_signed: true, client_auth: require_any}",
            "is require_any, but OpenSSL checks every certificate",
        ),
        ("network: tcp, address: here", "is 'here'; expected host:port"),
    ],
)
def test_what_cannot_be_listened_on_is_found_by_lint(fields, problem):
    with pytest.raises(ConfigError) as refused:
        parse_config(f"input: {{socket_server: {{{fields}}}}}")
    assert problem in str(refused.value)


@contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server, f"127.0.0.1:{server.getsockname()[1]}"


def test_a_client_greets_receives_and_connects_again(tmp_path):
    with listening() as (server, address):
        text = (
            f"input: {{socket: {{network: tcp, address: '{address}', "
            'open_message_mapping: \'root = "user," + "pw"\'}}'
        )
        with receiving(tmp_path, text) as it:
            for number in range(2):
                connection, _ = server.accept()
                with connection:
                    assert connection.recv(100) == b"user,pw"
                    connection.sendall(b"%d\nlast %d" % (number, number))
            assert it.wait(4) == [b"0", b"last 0", b"1", b"last 1"]
        assert it.lodged.counts["input_connection_lost"] >= 1


def test_a_client_says_why_it_cannot_connect_and_goes_on_trying(tmp_path):
    path = tmp_path / "later.sock"
    text = f"input: {{socket: {{network: unix, address: {path}}}}}"
    with receiving(tmp_path, text) as it:
        it.wait(0, lambda: it.lodged.counts.get("input_connection_failed", 0) > 1)
        assert "Failed to connect to socket: [Errno 2]" in it.lodged.log[0][1]
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            with server.accept()[0] as connection:
                connection.sendall(b"at last\n")
                assert it.wait(1) == [b"at last"]


def test_a_client_speaks_tls(tmp_path):
    certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with listening() as (server, address):

        def serve() -> None:
            connection, _ = server.accept()
            with context.wrap_socket(connection, server_side=True) as secured:
                secured.sendall(b"safe\n")
                secured.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = address.rpartition(":")[2]
        tls = f"tls: {{enabled: true, root_cas_file: {tmp_path}/cert.pem}}"
        text = f"input: {{socket: {{network: tcp, address: 'localhost:{port}', {tls}}}}}"
        with receiving(tmp_path, text) as it:
            assert it.wait(1) == [b"safe"]
    thread.join(30)
