"""What Spark takes for its Python in a service: asks for a fork, or becomes a Python of its own.

It runs by path and without site packages, in a few milliseconds, so it imports nothing but a
little of the standard library. See `streamer.spark.forks`.
"""

import json
import os
import signal
import socket
import sys

SOCKET = "STREAMER_FORKS"
"""The variable with the path of the socket at which to ask."""

PLANNERS = (
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
)
"""Planners: these connect back to Spark, tell it their own process id, and need no client."""

DAEMONS = ("pyspark.daemon", "streamer.spark.daemon")
"""What forks workers itself: Spark talks to it through the standard input and output."""

_ENDS = {signal.SIGTERM}
"""The signal by which Spark ends a daemon, and so the process that stands for it."""


def order_of(arguments: list) -> dict:  # type: ignore[type-arg]
    """Return what to ask for instead of a Python with these arguments; empty for nothing."""
    if arguments[:1] != ["-m"] or arguments[1] not in (*PLANNERS, *DAEMONS):
        return {}
    return {
        "module": arguments[1],
        "arguments": arguments[2:],
        "environment": dict(os.environ),
        "directory": os.getcwd(),
    }


def send(asked: socket.socket, order: dict) -> None:  # type: ignore[type-arg]
    """Send an order with this process's standard input, output and error."""
    socket.send_fds(asked, [b" "], [0, 1, 2])
    asked.sendall(json.dumps(order).encode())
    asked.shutdown(socket.SHUT_WR)


def received(asked: socket.socket) -> tuple:  # type: ignore[type-arg]
    """Return an order, and the file descriptors that came with it."""
    parts = []
    first, files, _, _ = socket.recv_fds(asked, 1, 3)
    while part := asked.recv(65536):
        parts.append(part)
    return json.loads(first + b"".join(parts)), files


def main(arguments: list) -> None:  # type: ignore[type-arg]
    """Do what a Python with these arguments would do."""
    order = order_of(arguments)
    asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = 0
    try:
        if order:
            # One that is asked early is still importing.
            asked.settimeout(60)
            # Who is to end before it knows its daemon would leave it behind.
            signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
            asked.connect(os.environ[SOCKET])
            send(asked, order)
            pid = int(asked.recv(20) or 0)
    except (OSError, ValueError):
        pid = 0
    if not pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        os.execv(sys.executable, [sys.executable, *arguments])
    if order["module"] in DAEMONS:
        _stand_for(pid, asked)


def _stand_for(pid: int, asked: socket.socket) -> None:
    """Live as long as a daemon, and end it when this process is to end."""
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    asked.settimeout(None)
    asked.recv(1)
    _remove_abandoned(os.environ[SOCKET])


def _remove_abandoned(path: str) -> None:
    """Delete the socket, and its directory, if who listened there was killed: nobody else would."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.connect(path)
    except ConnectionRefusedError:
        try:
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
        except OSError:
            pass  # Another one was faster.
    except OSError:
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
