"""An MQTT broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import free_port, installed, listens, running


@contextmanager
def mosquitto(directory: Path, port: int | None = None) -> Iterator[str]:
    """Run one that anybody may use; give its URL."""
    program = installed("mosquitto", "mosquitto", "/usr/sbin/mosquitto")
    port = port or free_port()
    config = directory / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n")
    command = [program, "-c", str(config)]
    with running(command, directory / "mosquitto.log", lambda: listens(port)):
        yield f"tcp://127.0.0.1:{port}"
