"""Benthos, built from its Go module, as a peer that has no micro-batches."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.compared.environments import cache
from tests.bench.process_tree import Tree

_SOURCES = Path(__file__).parent / "benthos"
_BUILD_S = 1200


class NoGoError(RuntimeError):
    """There is no Go on this machine."""


def build() -> Path:
    """Return the program; it is built where that was not done for these sources.

    Raises:
        NoGoError: there is no Go.
        RuntimeError: it cannot be built; the text has the end of what Go says.
    """
    place = cache().parent / "benthos"
    program, built = place / "benthos", place / "built.txt"
    sources = {name: (_SOURCES / name).read_text() for name in ("main.go", "go.mod", "go.sum")}
    wanted = "".join(sources.values())
    if program.exists() and built.exists() and built.read_text() == wanted:
        return program
    go = shutil.which("go")
    if go is None:
        raise NoGoError("there is no Go here, with which Benthos is built")
    place.mkdir(parents=True, exist_ok=True)
    said = subprocess.run(
        [go, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(program), "."],
        cwd=_SOURCES,
        capture_output=True,
        text=True,
        timeout=_BUILD_S,
        env={**os.environ, "GOWORK": "off", "CGO_ENABLED": "0"},
    )
    if said.returncode:
        raise RuntimeError(f"Benthos cannot be built: {said.stderr.strip()[-300:]}")
    built.write_text(wanted)
    return program


@dataclass(frozen=True)
class Peer:
    """Benthos, running.

    Attributes:
        process: the process.
        tree: its CPU seconds.
    """

    process: subprocess.Popen[bytes]
    tree: Tree


@contextmanager
def running(program: Path, config: str, directory: Path, **popen: Any) -> Iterator[Peer]:
    """Run Benthos with a config, and end it."""
    directory.mkdir(parents=True)
    file = directory / "config.yaml"
    file.write_text(config + "logger: {level: 'OFF'}\nshutdown_timeout: 1s\n")
    popen.setdefault("stdin", subprocess.DEVNULL)
    popen.setdefault("stdout", subprocess.DEVNULL)
    process = subprocess.Popen(
        [str(program), "run", str(file)], stderr=subprocess.DEVNULL, cwd=directory, **popen
    )
    peer = Peer(process, Tree(process.pid))
    try:
        yield peer
    finally:
        peer.tree.stop()
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
