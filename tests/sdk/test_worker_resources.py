"""What outlives a task, and what does not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from streamer.config import parse_config
from streamer.plan import make_plan
from streamer.sdk.spec import BuildContext, Kind, ParsedComponent
from streamer.sdk.worker_resources import WorkerResources, resources_of_run


def test_a_thing_is_made_once_for_a_key() -> None:
    lasting = WorkerResources()
    first = lasting.get("a", object)
    assert lasting.get("a", object) is first
    assert lasting.get("b", object) is not first


def test_what_cannot_be_made_is_asked_for_again() -> None:
    lasting = WorkerResources()
    with pytest.raises(ZeroDivisionError):
        lasting.get("a", lambda: 1 // 0)
    assert lasting.get("a", lambda: 1) == 1


def test_threads_that_come_at_once_get_the_same() -> None:
    lasting, gate, found = WorkerResources(), threading.Barrier(8), []

    def ask() -> None:
        gate.wait(30)
        found.append(lasting.get("a", object))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(map(id, found))) == 1


def test_a_run_has_one_store_and_another_run_another() -> None:
    assert resources_of_run("test one") is resources_of_run("test one")
    assert resources_of_run("test one") is not resources_of_run("test two")
    assert resources_of_run("") is not resources_of_run("")


def test_a_forked_process_begins_with_nothing() -> None:
    resources_of_run("test fork").get("a", lambda: 1)
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        os._exit(0 if resources_of_run("test fork").get("a", lambda: 2) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert resources_of_run("test fork").get("a", lambda: 2) == 1


def _contexts() -> tuple[BuildContext, BuildContext]:
    """Return contexts of two tasks of one run."""
    plan = make_plan(parse_config("input: {generate: {mapping: root = 1}}", env={}))
    component = ParsedComponent(Kind.PROCESSOR, "http", path="pipeline.processors.0")
    return plan.context(component), plan.context(component)


def test_tasks_of_a_run_share_what_lasts() -> None:
    one, other = _contexts()
    made = one.worker_resource("client", object)
    assert other.worker_resource("client", object) is made
    assert one.isolated().worker_resource("client", object) is made
    assert other.worker_resource("another", object) is not made


def test_two_runs_of_one_config_share_nothing() -> None:
    one, other = _contexts()[0], _contexts()[0]
    assert one.worker_resource("client", object) is not other.worker_resource("client", object)


def test_what_a_runs_processes_share_goes_when_its_driver_ends() -> None:
    program = "from streamer.sdk.worker_resources import new_run_id, resources_of_run\n"
    program += "print(resources_of_run(new_run_id()).shared_directory())"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stderr == ""
    assert "streamer-" in ended.stdout and not Path(ended.stdout.strip()).exists()
