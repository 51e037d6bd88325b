"""Start `streamer` as a process, watch it, kill it: nothing here knows the product's code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Program:
    """One run of `streamer -c config`, its log lines as JSON, its standard output in a file."""

    def __init__(
        self,
        config: Path,
        checkpoint: Path,
        *more: str,
        before: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        **popen: Any,
    ) -> None:
        self.directory = checkpoint.parent
        self.log_path = self.directory / f"log-{time.time_ns()}.jsonl"
        self._log = self.log_path.open("wb")
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [
                *before,
                *(sys.executable, "-m", "streamer.cli.main", "-c", str(config)),
                *("--checkpoint", str(checkpoint), "-s", "logger.format=json", *more),
            ],
            stderr=self._log,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            **popen,
        )

    def lines(self) -> list[dict[str, Any]]:
        """The log lines so far."""
        found = []
        for line in self.log_path.read_bytes().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                found.append({"msg": line.decode(errors="replace"), "level": "raw"})
        return found

    def messages(self) -> list[str]:
        return [str(line.get("msg", "")) for line in self.lines()]

    def wait_for(self, what: Callable[[], bool], seconds: float, why: str = "") -> None:
        until = time.monotonic() + seconds
        while not what():
            if time.monotonic() > until or (self.process.poll() is not None and not what()):
                state = self.process.poll()
                log = "\n".join(self.messages()[-30:])
                raise AssertionError(f"waited in vain {why} (exit {state}):\n{log}")
            time.sleep(0.1)

    def wait_running(self) -> None:
        self.wait_for(lambda: "Running" in self.messages(), 240, "for the stream to run")

    def kill(self) -> None:
        """kill -9 of the driver; its JVM and workers have to notice by themselves."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds: float = 240) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def finish(self, seconds: float) -> int:
        """Wait for a clean end."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("did not end:\n" + "\n".join(self.messages()[-30:])) from None

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self._log.close()


@contextmanager
def program(config: Path, checkpoint: Path, *more: str, **popen: Any) -> Iterator[Program]:
    """Run the program and see to it that it is gone afterwards."""
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    running = Program(config, checkpoint, *more, **popen)
    try:
        yield running
    finally:
        running.close()
