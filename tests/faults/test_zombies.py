"""Nothing that a dead run has begun sends any more, whichever of its processes is killed."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.service import Service, service
from tests.processes import command, descendants, parent, python_workers, runs
from tests.servers import free_port
from tests.servers.http import http_server

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

# The patience of a task is not all: `drop_on` waits inside of it for as long as it is to.
STREAM = """\
input: { generate: { mapping: 'root.id = counter()', interval: 100ms, count: 20 } }
output:
  drop_on:
    back_pressure: 1h
    output: { retry: { output: { http_client: { url: 'http://127.0.0.1:%d', retries: 0 } } } }
"""
GONE_S, SILENCE_S = 15.0, 4.0


def marked(mark: str) -> set[int]:
    """Return the processes that run and have a variable of this value, or are forked of such."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environment = (path / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in environment and runs(int(path.name)):
            found.add(int(path.name))
    return found


def daemons(running: Service) -> list[int]:
    return sorted({parent(pid) for pid in python_workers(running.process.pid)})


def forkers(running: Service) -> list[int]:
    found = descendants(running.process.pid)
    ours = {pid for pid in found if "streamer.spark.fork_server.fork_server" in command(pid)}
    return [pid for pid in ours if parent(pid) == running.process.pid]


def java(running: Service) -> list[int]:
    return [pid for pid in descendants(running.process.pid) if "java" in command(pid).split(" ")[0]]


def forked(running: Service) -> list[int]:
    """Return the planners and daemons: all that our process has forked."""
    [forker] = forkers(running)
    return [pid for pid in descendants(running.process.pid) if parent(pid) == forker]


KILLED: dict[str, Callable[[Service], list[int]]] = {
    "program": lambda running: [],
    "JVM": java,
    "daemon": daemons,
    "forker": forkers,
    "all that is forked": forked,
    "worker": lambda running: python_workers(running.process.pid),
}


@pytest.mark.parametrize("killed", KILLED)
def test_nothing_is_left_of_a_run_and_nothing_arrives_of_it(
    killed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, temporary = uuid.uuid4().hex, tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("STREAMER_MARK", mark)
    monkeypatch.setenv("TMPDIR", str(temporary))
    # What makes an archive of classes for later starts is no part of the run.
    monkeypatch.setenv("STREAMER_CLASS_ARCHIVE", "off")
    port = free_port()
    with service(tmp_path / "s") as running:
        running.wait_running()
        answer = running.ask("POST", "/streams/a", STREAM % port)
        assert answer.status_code == 200, answer.text
        running.wait_for(
            lambda: running.streams()["a"].get("reason", "").startswith("Output blocked"),
            180,
            "for it to wait",
        )
        for pid in KILLED[killed](running):
            os.kill(pid, signal.SIGKILL)
        # In no time to begin anything anew.
        running.kill()
        until = time.monotonic() + GONE_S
        while (left := marked(mark) - {os.getpid()}) and time.monotonic() < until:
            time.sleep(0.2)
        said = {pid: command(pid) for pid in left}
        with http_server(port=port) as server:
            time.sleep(SILENCE_S)
        assert not said
        assert not server.bodies
    # Launchers are every start's of this user.
    shared = f"-{os.getuid()}"
    assert not [path.name for path in temporary.iterdir() if not path.name.endswith(shared)]
