"""`socket`, `websocket` and `subprocess`: connections that last, and those that are lost."""

from __future__ import annotations

import base64
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from websockets.sync.server import ServerConnection, serve

from streamer.core.errors import ConfigError
from tests.components.outputs.scripted import Seen, batches, built


class Listener:
    """A server that keeps what it is sent, connection by connection."""

    def __init__(self, made: socket.socket) -> None:
        self.socket = made
        self.received: list[bytes] = []
        self.connections: list[socket.socket] = []
        self.changed = threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with self.changed:
                self.connections.append(connection)
                self.received.append(b"")
                number = len(self.received) - 1
            threading.Thread(target=self._read, args=(connection, number), daemon=True).start()

    def _read(self, connection: socket.socket, number: int) -> None:
        while True:
            try:
                block = connection.recv(4096)
            except OSError:
                return
            if not block:
                return
            with self.changed:
                self.received[number] += block
                self.changed.notify_all()

    def wait(self, *received: bytes) -> None:
        """Wait until so much has been received on each connection."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.received == list(received), 60), self.received

    def drop(self) -> None:
        """Close the newest connection, and wait until the other side can tell."""
        connection = self.connections[-1]
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()

    def close(self) -> None:
        # A thread that waits for somebody would keep it open.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for connection in self.connections:
            connection.close()


@contextmanager
def listening(made: socket.socket) -> Iterator[Listener]:
    listener = Listener(made)
    try:
        yield listener
    finally:
        listener.close()


def tcp(port: int = 0) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


def test_messages_are_a_stream_of_lines_over_one_connection():
    with listening(tcp()) as server:
        port = server.socket.getsockname()[1]
        output = built(f"socket: {{network: tcp, address: '127.0.0.1:{port}'}}")
        assert output.deliver(batches("ab", "c"), Seen().ex).errors == [None, None]
        assert output.deliver(batches("d"), Seen().ex).errors == [None]
        server.wait(b"a\nb\nc\nd\n")


def test_a_unix_socket_and_any_delimiter(tmp_path):
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(tmp_path / "s"))
    made.listen()
    with listening(made) as server:
        output = built(f"socket: {{network: unix, address: {tmp_path}/s, codec: 'delim:|'}}")
        assert output.deliver(batches("ab"), Seen().ex).errors == [None]
        server.wait(b"a|b|")


def test_with_all_bytes_each_message_has_a_connection():
    with listening(tcp()) as server:
        port = server.socket.getsockname()[1]
        output = built(f"socket: {{network: TCP, address: 'localhost:{port}', codec: all-bytes}}")
        assert output.deliver(batches("a", "b"), Seen().ex).errors == [None, None]
        server.wait(b"a", b"b")


def test_over_udp_a_message_is_a_datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        output = built(f"socket: {{network: udp, address: '127.0.0.1:{server.getsockname()[1]}'}}")
        assert output.deliver(batches("ab"), Seen().ex).errors == [None]
        assert [server.recv(100), server.recv(100)] == [b"a\n", b"b\n"]


def test_a_server_that_goes_away_and_comes_back_is_connected_to_again():
    with listening(tcp()) as server:
        port = server.socket.getsockname()[1]
        output = built(f"socket: {{network: tcp, address: '127.0.0.1:{port}'}}")
        output.deliver(batches("a"), Seen().ex)
        server.wait(b"a\n")
        server.drop()
    seen = Seen()
    # It comes back when it has been looked for in vain.
    come_back = []

    def pause(ns: int) -> None:
        seen.pauses.append(ns)
        if not come_back:
            come_back.append(tcp(port))

    seen.ex.sleep = pause
    assert output.deliver(batches("b"), seen.ex).errors == [None]
    with listening(come_back[0]) as server:
        server.wait(b"b\n")
    assert seen.counts["output_connection_lost"] == 1
    assert seen.counts["output_connection_failed"] >= 1
    assert ("WARN", "Connection of socket lost: the server has closed the connection") in seen.lines


@pytest.mark.parametrize(
    ("yaml", "text"),
    [
        ("socket: {network: tcp, address: nowhere}", "expected host:port"),
        ("socket: {network: sctp, address: 'a:1'}", "unix, tcp"),
        ("socket: {network: udp, address: 'a:1', tls: {enabled: true}}", "leave it out with udp"),
        ("websocket: {url: 'http://x'}", "begins with ws://"),
        ("subprocess: {name: ''}", "expected a command"),
        ("subprocess: {name: cat, codec: length}", "lines"),
    ],
)
def test_what_is_wrong_is_told(yaml, text):
    with pytest.raises(ConfigError, match=text):
        built(yaml)


@contextmanager
def websockets(handler) -> Iterator[str]:
    with serve(handler, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/here"
        finally:
            server.shutdown()
            thread.join()


def test_messages_go_over_a_websocket_as_binary_ones():
    received: list[object] = []
    done = threading.Event()
    asked: dict[str, str] = {}

    def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        asked.update(path=connection.request.path)
        asked.update(auth=connection.request.headers["Authorization"])
        connection.send("nobody reads this")
        for _ in range(3):
            received.append(connection.recv())
        done.set()

    with websockets(handler) as url:
        output = built(
            f"websocket: {{url: '{url}', basic_auth: {{enabled: true, username: u, password: p}}}}"
        )
        assert output.deliver(batches("ab", "c"), Seen().ex).errors == [None, None]
        assert done.wait(60)
        output.output._connection.close()
    assert received == [b"a", b"b", b"c"]
    assert asked == {"path": "/here", "auth": "Basic " + base64.b64encode(b"u:p").decode()}


def test_a_websocket_that_is_closed_is_opened_again():
    received: list[object] = []
    changed = threading.Condition()

    def handler(connection: ServerConnection) -> None:
        # One message, and it is over.
        with changed:
            received.append(connection.recv())
            changed.notify_all()

    with websockets(handler) as url:
        output = built(f"websocket: {{url: '{url}'}}")
        output.deliver(batches("a"), Seen().ex)
        seen = Seen()
        with changed:
            assert changed.wait_for(lambda: len(received) == 1, 60)
        made = output.output._connection._connection
        # Until this side has heard of it.
        made.recv_events_thread.join(60)
        [error] = output.deliver(batches("b"), seen.ex).errors
        assert error is not None
        assert output.deliver(batches("b"), seen.ex).errors == [None]
        with changed:
            assert changed.wait_for(lambda: len(received) == 2, 60)
        output.output._connection.close()
    assert received == [b"a", b"b"]
    assert seen.counts["output_connection_lost"] == 1


def test_a_process_gets_lines_until_its_input_is_closed(tmp_path):
    copy = f"import sys; open({str(tmp_path / 'out')!r}, 'wb').write(sys.stdin.buffer.read())"
    output = built(f'subprocess: {{name: {sys.executable}, args: [-c, "{copy}"]}}')
    assert output.deliver(batches("ab", "c"), Seen().ex).errors == [None, None]
    running = output.output._process._popen
    running.stdin.close()
    assert running.wait(60) == 0
    assert (tmp_path / "out").read_bytes() == b"a\nb\nc\n"
    output.output._process.exit_report()


def test_a_process_that_ends_is_started_again_and_what_it_said_is_logged():
    fail = "import sys; sys.stdin.readline(); sys.exit('oh no')"
    output = built(f'subprocess: {{name: {sys.executable}, args: [-c, "{fail}"]}}')
    assert output.deliver(batches("a"), Seen().ex).errors == [None]
    first = output.output._process._popen
    assert first.wait(60) == 1
    seen = Seen()
    assert output.deliver(batches("b"), seen.ex).errors == [None]
    assert ("ERROR", "Process exited with error: oh no\n") in seen.lines
    second = output.output._process._popen
    assert second is not first and second.wait(60) == 1
    assert output.output._process.exit_report() is not None


def test_a_command_that_there_is_not_is_looked_for_again():
    seen = Seen()

    def pause(ns: int) -> None:
        raise InterruptedError("enough")

    seen.ex.sleep = pause
    output = built("subprocess: {name: no-such-command-here}")
    with pytest.raises(InterruptedError):
        output.deliver(batches("a"), seen.ex)
    assert seen.lines[0][1].startswith("Failed to connect to subprocess: ")
