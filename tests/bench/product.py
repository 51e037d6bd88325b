"""One run of `streamer -c config`, watched from outside: its log, its process tree, its state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.process_tree import Tree

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Delivered:
    """What the program says of a micro-batch, and when (Unix time)."""

    at: float
    micro_batch: int
    messages: int
    dropped: int
    bytes: int
    write_ms: float
    held: tuple[int, ...]


class Product:
    """The running program."""

    def __init__(
        self,
        config: str,
        directory: Path,
        every: float = 0.2,
        *,
        module: Sequence[str] = ("streamer.cli.main",),
        watches_state: bool = True,
        shared: bool = False,
        **popen: Any,
    ) -> None:
        """Start it.

        Args:
            config: the config's text.
            directory: its own, which is made.
            every: seconds between two samples of its process tree.
            module: what is run, with its first arguments.
            watches_state: whether the size of its state is looked at.
            shared: as `Tree` takes it.
            popen: for `subprocess.Popen`.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.checkpoint = directory / "checkpoint"
        path = directory / "config.yaml"
        path.write_text(config)
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", subprocess.DEVNULL)
        self.launched = time.time()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", *module, "-c", str(path)),
                *("--checkpoint", str(self.checkpoint)),
                *("--log.level", "debug", "-s", "logger.format=json"),
            ],
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            **popen,
        )
        self.delivered: list[Delivered] = []
        self.troubles: list[str] = []
        self.state: list[tuple[float, int]] = []
        """Bytes of the state in the checkpoint, at Unix times."""
        self.tree = Tree(self.process.pid, every, shared=shared)
        self._readers = [
            threading.Thread(target=target, daemon=True)
            for target in (self._read_log, *((self._watch_state,) if watches_state else ()))
        ]
        for reader in self._readers:
            reader.start()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            at = time.time()
            try:
                found = json.loads(line)
            except ValueError:
                found = {"level": "error", "msg": line.decode(errors="replace").rstrip()}
            if found.get("msg") == "Delivered a micro-batch":
                figures = {name: found[name] for name in Delivered.__annotations__ if name in found}
                figures["held"] = tuple(found.get("held", ()))
                self.delivered.append(Delivered(at=at, **figures))
            elif found["level"] in ("error", "fatal", "warning") and "component" not in found:
                self.troubles.append(f"{found['level']}: {found['msg']}")

    def _watch_state(self) -> None:
        while self.process.poll() is None:
            self.state.append((time.time(), size_of(self.checkpoint / "spark" / "state")))
            time.sleep(0.5)

    def wait(self, timeout: float) -> None:
        """Wait for its end.

        Raises:
            RuntimeError: it failed, or took longer.
        """
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = -1
        if code:
            said = "\n  ".join(self.troubles[-20:])
            raise RuntimeError(
                f"streamer did not end well within {timeout:.0f} s: {code}\n  {said}"
            )
        for reader in self._readers:
            reader.join(5)

    def wait_for_start(self, timeout: float) -> None:
        """Wait for the first micro-batch, which tells the shards the time and may bring nothing."""
        until = time.time() + timeout
        while not self.delivered:
            if time.time() > until or self.process.poll() is not None:
                raise RuntimeError(f"streamer did not start: {self.troubles}")
            time.sleep(0.02)

    def wait_for_messages(self, messages: int, timeout: float) -> None:
        """Wait until so many were taken in."""
        until = time.time() + timeout
        while not (self.delivered and self.delivered[-1].messages >= messages):
            if time.time() > until or self.process.poll() is not None:
                said = "\n  ".join(self.troubles[-20:])
                raise RuntimeError(f"streamer did not take in {messages:,} messages\n  {said}")
            time.sleep(0.02)

    def close(self) -> None:
        """Stop it if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.tree.stop()

    def course(self) -> str:
        """The micro-batches one by one, for when something is wrong."""
        return "".join(
            f"\n  {d.at - self.launched:6.1f} s: {d.micro_batch}, {d.messages:,} in, "
            f"{d.dropped:,} dropped, {sum(d.held):,} held, {d.bytes:,} bytes out"
            for d in self.delivered[-30:]
        )

    def filled(self) -> list[Delivered]:
        """The micro-batches that brought messages."""
        found, before = [], 0
        for one in self.delivered:
            if one.messages > before:
                found.append(one)
            before = one.messages
        return found


@contextmanager
def product(config: str, directory: Path, every: float = 0.2, **popen: Any) -> Iterator[Product]:
    """Run the program, and see to it that it ends."""
    running = Product(config, directory, every, **popen)
    try:
        yield running
    finally:
        running.close()


def size_of(directory: Path) -> int:
    """Bytes of all files in a directory, which may change meanwhile."""
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue
    return total
