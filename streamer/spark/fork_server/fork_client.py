"""Client that Spark takes for its Python in a service: asks for a fork, or becomes a Python.

It runs by path and without site packages, in a few milliseconds, so it imports nothing but a
little of the standard library. See `streamer.spark.fork_server.fork_server`.
"""

import json
import os
import signal
import socket
import sys

SOCKET_VARIABLE = "STREAMER_FORKS"
"""The variable with the path of the socket at which to ask."""

NOTES_FILE = "unforked"
"""A file beside the socket, with a line for each Python that was to be forked and was not."""

PLANNERS = (
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
)
"""Planners: these connect back to Spark, tell it their own process id, and need no client."""

DAEMONS = ("pyspark.daemon", "streamer.spark.fork_server.worker_daemon")
"""What forks workers itself: Spark talks to it through the standard input and output."""

_TERMINATION_SIGNALS = {signal.SIGTERM}
"""The signal by which Spark ends a daemon, and so the process that stands for it."""


def build_request(arguments: list) -> dict:  # type: ignore[type-arg]
    """Return what to ask for instead of a Python with these arguments; empty for nothing."""
    if arguments[:1] != ["-m"] or arguments[1] not in (*PLANNERS, *DAEMONS):
        return {}
    return {
        "module": arguments[1],
        "arguments": arguments[2:],
        "environment": dict(os.environ),
        "directory": os.getcwd(),
    }


def send_request(connection: socket.socket, request: dict) -> None:  # type: ignore[type-arg]
    """Send an order with this process's standard input, output and error."""
    socket.send_fds(connection, [b" "], [0, 1, 2])
    connection.sendall(json.dumps(request).encode())
    connection.shutdown(socket.SHUT_WR)


def receive_request(connection: socket.socket) -> tuple:  # type: ignore[type-arg]
    """Return an order, and the file descriptors that came with it."""
    parts = []
    first, files, _, _ = socket.recv_fds(connection, 1, 3)
    while part := connection.recv(65536):
        parts.append(part)
    return json.loads(first + b"".join(parts)), files


def main(arguments: list) -> None:  # type: ignore[type-arg]
    """Do what a Python with these arguments would do."""
    request = build_request(arguments)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = 0
    try:
        if request:
            # One that is asked early is still importing.
            connection.settimeout(60)
            # Who is to end before it knows its daemon would leave it behind.
            signal.pthread_sigmask(signal.SIG_BLOCK, _TERMINATION_SIGNALS)
            connection.connect(os.environ[SOCKET_VARIABLE])
            send_request(connection, request)
            pid = int(connection.recv(20) or 0)
    except (OSError, ValueError) as error:
        pid = 0
        _note_unforked(request["module"], error)
    if not pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERMINATION_SIGNALS)
        os.execv(sys.executable, [sys.executable, *arguments])
    if request["module"] in DAEMONS:
        _wait_as_proxy(pid, connection)


def _note_unforked(module: str, error: Exception) -> None:
    """Leave a line for the driver, which counts them and warns."""
    path = os.path.join(os.path.dirname(os.environ[SOCKET_VARIABLE]), NOTES_FILE)
    text = " ".join(f"{module}: {error!r}".split())
    try:
        with open(path, "a") as notes:
            notes.write(text + "\n")
    except OSError:
        pass  # The driver has gone, and its directory too.


def _wait_as_proxy(pid: int, connection: socket.socket) -> None:
    """Live as long as a daemon, and end it when this process is to end."""
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERMINATION_SIGNALS)
    connection.settimeout(None)
    connection.recv(1)
    _remove_abandoned_socket(os.environ[SOCKET_VARIABLE])


def _remove_abandoned_socket(path: str) -> None:
    """Delete the socket, and its directory, if who listened there was killed: nobody else would."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(path)
    except ConnectionRefusedError:
        try:
            directory = os.path.dirname(path)
            for name in os.listdir(directory):
                os.unlink(os.path.join(directory, name))
            os.rmdir(directory)
        except OSError:
            pass  # Another one was faster.
    except OSError:
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
