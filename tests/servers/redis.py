"""A Redis server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import free_port, installed, listens, running


@contextmanager
def redis_server(directory: Path, port: int | None = None, *more: str) -> Iterator[str]:
    """Run one that keeps nothing on disk; give its URL. `more` are further arguments."""
    program = installed("redis-server", "redis-server")
    port = port or free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", *more]
    command += ["--dir", str(directory)]
    with running(command, directory / "redis.log", lambda: listens(port)):
        yield f"redis://127.0.0.1:{port}"
