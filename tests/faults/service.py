"""Start `streamer streams` as a process, ask it, kill it: nothing here knows the product's code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx2
import yaml

from tests.faults.vitals import Vitals, vitals
from tests.servers import free_port

ROOT = """\
http: { address: "127.0.0.1:%d" }
spark: { master: "local[2]" }
logger: { format: json }
"""


class Service:
    """One run of the service on a directory; a second one goes on where it was."""

    def __init__(
        self,
        directory: Path,
        *more: str,
        conf: Mapping[str, str] = MappingProxyType({}),
        local: bool = True,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        port = free_port()
        root = yaml.safe_load(ROOT % port)
        root["spark"]["conf"] = dict(conf)
        (directory / "root.yaml").write_text(yaml.safe_dump(root))
        self.log_path = directory / f"log-{time.time_ns()}.jsonl"
        self._log = self.log_path.open("wb")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "streamer.cli.main", "streams"),
                *("-o", str(directory / "root.yaml"), "--checkpoints", str(directory / "c")),
                *(["--allow-local"] if local else []),
                *more,
            ],
            stdin=subprocess.DEVNULL,
            stderr=self._log,
            env={
                **os.environ,
                "PYTHONUNBUFFERED": "1",
                "XDG_STATE_HOME": str(directory / "state"),
            },
        )
        self.client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=600)

    def ask(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        content = body if isinstance(body, str | bytes | None) else json.dumps(body)
        return self.client.request(method, path, content=content)

    def lines(self) -> list[dict[str, Any]]:
        found = []
        for line in self.log_path.read_bytes().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                found.append({"msg": line.decode(errors="replace"), "level": "raw"})
        return found

    def wait_for(self, what: Callable[[], bool], seconds: float, why: str) -> None:
        until = time.monotonic() + seconds
        while not what():
            if time.monotonic() > until or self.process.poll() is not None:
                log = "\n".join(str(line) for line in self.lines()[-30:])
                raise AssertionError(f"waited in vain {why} ({self.process.poll()}):\n{log}")
            time.sleep(0.1)

    def wait_running(self) -> None:
        """Wait until all that should run was started."""
        self.wait_for(lambda: any(x.get("msg") == "Running" for x in self.lines()), 240, "to run")

    def streams(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", "/streams").json()
        return found

    def kill(self) -> None:
        """kill -9 of the driver; its JVM and workers have to notice by themselves."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self.client.close()
        self._log.close()


@contextmanager
def service(
    directory: Path,
    *more: str,
    conf: Mapping[str, str] = MappingProxyType({}),
    local: bool = True,
) -> Iterator[Service]:
    """Run the service and see to it that it is gone afterwards."""
    running = Service(directory, *more, conf=conf, local=local)
    try:
        yield running
    finally:
        running.close()


def leaves_nothing(running: Service, before: Vitals) -> None:
    """Wait until the service holds what it held before there were streams.

    It keeps threads for those who ask, and Spark workers for a minute, in case of more.
    """

    def as_before() -> bool:
        now = vitals(running.process.pid)
        return (
            now.queries == 0
            and now.ports <= before.ports
            and now.threads <= before.threads + 24
            and now.processes <= before.processes + 6
        )

    running.wait_for(as_before, 240, f"for all to be given back: {before}")
