"""Real servers for tests, started on loopback in a directory of their own and ended by process id.

Where one is not installed its tests are skipped and say what to install, except where
STREAMER_TEST_SERVERS=required says that it must be there, as in continuous integration. Use them
through fixtures that all tests have: `redis_url`, `postgres_dsn`, `mysql_dsn`, `kafka`.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import NoReturn

import pytest

from tests.plugin.report import missing

_PATIENCE = 120.0


def installed(package: str, command: str, elsewhere: str = "") -> str:
    """Return the path of a program, or skip the test: `package` is what Debian calls it."""
    found = shutil.which(command) or next(iter(sorted(glob(elsewhere))), None)
    return found or skip_without(command, f"Debian: apt-get install {package}")


def skip_without(tool: str, how: str) -> NoReturn:
    """Skip the test for want of a tool, or fail where it must be there: `how` it is installed."""
    said = missing(tool, how)
    assert os.environ.get("STREAMER_TEST_SERVERS") != "required", said
    pytest.skip(said)


def free_port() -> int:
    """Return a port of loopback that nobody listens to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def lasting_port() -> int:
    """Return a port that a server can come back to, or take only later.

    Unlike a free port it is none that the system gives to those who connect to others (32768 to
    60999 on Linux), so that it is still free when the machine is busy.
    """
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)  # whatever a test has seeded
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@contextmanager
def running(
    command: list[str],
    log: Path,
    is_up: Callable[[], bool],
    user: str | None = None,
    ends_at: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends; wait until it is up.

    Args:
        command: the program and its arguments; it must stay in the foreground.
        log: the file that gets what it prints.
        is_up: whether it answers.
        user: who runs it; the suite's own user when it is None.
        ends_at: the signal at which it ends, whoever is still connected.
    """
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, user=user)
        try:
            until = time.monotonic() + _PATIENCE
            while not is_up():
                assert server.poll() is None, f"{command[0]} ended: {log.read_text()}"
                assert time.monotonic() < until, f"{command[0]} is not up: {log.read_text()}"
                time.sleep(0.05)
            yield server
        finally:
            server.send_signal(ends_at)
            try:
                server.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def listens(port: int) -> bool:
    """Tell whether somebody takes connections at a port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
