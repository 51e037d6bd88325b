"""A NATS server with JetStream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import free_port, installed, listens, running


@contextmanager
def nats_server(directory: Path, port: int | None = None, settings: str = "") -> Iterator[str]:
    """Run one; give its URL.

    Args:
        directory: for what it keeps, which a later one finds again.
        port: where it listens; a free one when None.
        settings: more lines of its configuration.
    """
    program = installed("nats-server", "nats-server", "/usr/sbin/nats-server")
    port = port or free_port()
    config = directory / "nats.conf"
    config.write_text(
        f"listen: 127.0.0.1:{port}\njetstream {{ store_dir: {directory}/js }}\n{settings}\n"
    )
    command = [program, "-c", str(config)]
    with running(command, directory / "nats.log", lambda: listens(port)):
        yield f"nats://127.0.0.1:{port}"
