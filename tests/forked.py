"""Processes of the command line that are at work at once: forks of one that has imported it.

Each is a process of its own, with the arguments, directory, environment and standard streams of
whoever called it; only the imports, most of a short command's time, are made once. How long a
start takes, and what it imports, is a matter of `tests/test_architecture.py`.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_CLIENT = """\
#!{python} -IS
import os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({place!r})
    words = [os.getcwd(), str(len(sys.argv) - 1), *sys.argv[1:]]
    words += [name + "=" + value for name, value in os.environ.items()]
    text = "\\0".join(words).encode(errors="surrogateescape")
    socket.send_fds(server, [len(text).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(text)
    code = server.recv(1)
sys.exit(code[0] if code else "the process has ended without an exit code")
"""
_USED = (
    ("lint", "configs/traffic_light.yaml"),
    ("test", "configs/traffic_light.yaml"),
    ("explain", "configs/traffic_light.yaml"),
    ("blobl", "root = this", "-i", "configs/traffic_light.yaml", "--raw"),
)
"""Commands whose imports most others share."""


@contextmanager
def forked_commands(directory: Path) -> Iterator[Path]:
    """Give a program to call in the place of `streamer`, while the context lasts.

    Args:
        directory: where the program and its socket are made.
    """
    place = directory / "socket"
    command = directory / "streamer"
    command.write_text(_CLIENT.format(python=sys.executable, place=str(place)))
    command.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(64)
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.forked", str(listener.fileno())],
            cwd=_ROOT,
            pass_fds=[listener.fileno()],
        )
    try:
        yield command
    finally:
        server.kill()
        server.wait()


def _serve(listener: socket.socket) -> None:
    """Fork a process for each call, until killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended but who called
    while True:
        caller, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            _work(caller)
        caller.close()


def _work(caller: socket.socket) -> None:
    """Be the process that was called, and end."""
    size, streams, _, _ = socket.recv_fds(caller, 4, 3)
    text = b""
    while len(text) < int.from_bytes(size, "big"):
        text += caller.recv(1 << 16)
    directory, count, *words = text.decode(errors="surrogateescape").split("\0")
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(directory)
    arguments, environment = words[: int(count)], words[int(count) :]
    os.environ.clear()
    os.environ.update(entry.split("=", 1) for entry in environment)
    code = _run(arguments)
    caller.sendall(bytes([code]))
    os._exit(code)


def _run(arguments: list[str]) -> int:
    from streamer.cli.main import invoke

    try:
        return invoke(arguments)
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else bool(e.code)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def main() -> None:
    """Import what commands need, and serve the socket whose file descriptor is the argument."""
    streams = [os.dup(number) for number in (1, 2)]
    nothing = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nothing, number)
    for arguments in _USED:
        _run(list(arguments))
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
    _serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
