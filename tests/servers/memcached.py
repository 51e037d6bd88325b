"""A memcached server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import free_port, installed, listens, running


@contextmanager
def memcached_server(directory: Path, port: int | None = None) -> Iterator[str]:
    """Run one; give its address. It refuses to be run by root, so that it is told by whom."""
    program = installed("memcached", "memcached", "/usr/bin/memcached")
    port = port or free_port()
    command = [program, "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-m", "16"]
    if os.geteuid() == 0:
        command += ["-u", "nobody"]
    with running(command, directory / "memcached.log", lambda: listens(port)):
        yield f"127.0.0.1:{port}"
