"""What a person is told when something breaks down beneath a stream: a sentence, and the component.

Faults in the program itself are put into its workers by a module that Python loads at its start.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.faults.program import Program, program
from tests.processes import python_workers
from tests.servers.disks import small_disk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WAIT = 240

# Breaks a function of the program for as long as a file is there.
SITE = """
import importlib.abc, importlib.util, os, sys

MODULE, PLACE, FAULT, ONCE = {module!r}, {place!r}, {fault!r}, {once!r}

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module
        def exec_module(module):
            load(module)
            owner = getattr(module, PLACE[0])
            whole = getattr(owner, PLACE[1])
            def broken(self, *arguments, **more):
                yield from whole(self, *arguments, **more)
                if not os.path.exists(FAULT):
                    return
                if ONCE:
                    os.remove(FAULT)
                raise RuntimeError("a fault\\nof our own")
            setattr(owner, PLACE[1], broken)
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""


def with_fault(
    directory: Path, module: str, *place: str, once: bool
) -> tuple[dict[str, str], Path]:
    """Return an environment in which a generator fails, after all, while a file is there.

    `once`: the file goes with the first failure, so that the task is tried again with success.
    """
    site, fault = directory / "site", directory / "fault"
    site.mkdir()
    text = SITE.format(module=module, place=place, fault=str(fault), once=once)
    (site / "sitecustomize.py").write_text(text)
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths)}, fault


def kill_workers(pid: int) -> None:
    """Kill Python workers, which are processes that a daemon has forked."""
    for one in python_workers(pid):
        os.kill(one, signal.SIGKILL)


def failures(running: Program) -> list[dict[str, object]]:
    return [
        line for line in running.lines() if "The micro-batch failed" in str(line.get("msg", ""))
    ]


def told(running: Program, words: str) -> dict[str, object]:
    """Wait for a line about a micro-batch that failed."""

    def lines() -> list[dict[str, object]]:
        return [line for line in failures(running) if words in str(line["msg"])]

    running.wait_for(lambda: bool(lines()), WAIT, f"for {words!r}")
    return lines()[0]


def says_no_trace(running: Program) -> None:
    text = running.log_path.read_text()
    for trace in ("Traceback", "\\tat ", "\tat ", "Caused by", "py4j", "org.apache"):
        assert trace not in text, text[max(text.find(trace) - 500, 0) :][:1500]


WINDOW = """
http: { enabled: false }
input: { label: src, generate: { mapping: 'root.n = counter()', interval: 50ms } }
buffer: { system_window: { size: 2s } }
pipeline: { processors: [ { sleep: { duration: 300ms } } ] }
output: { label: dst, drop: {} }
spark: { master: 'local[2]' }
"""


def test_what_breaks_down_in_a_stream_is_said_in_a_sentence(tmp_path: Path, monkeypatch):
    more, fault = with_fault(
        tmp_path, "streamer.engine.stage.window_pipeline", "Leaving", "payloads", once=False
    )
    monkeypatch.setenv("PYTHONPATH", more["PYTHONPATH"])
    config = tmp_path / "cars.yaml"
    config.write_text(WINDOW)
    with program(config, tmp_path / "c" / "checkpoint") as running:
        running.wait_running()
        fault.touch()
        line = told(running, "a fault")
        fault.unlink()
        assert "RuntimeError: a fault of our own; trying again" in str(line["msg"])
        assert (line["path"], line["label"]) == ("root.output", "dst")
        assert isinstance(line["micro_batch"], int)

        def ended() -> list[dict[str, object]]:
            return [one for one in failures(running) if "a Python worker ended" in str(one["msg"])]

        # Spark tries a task three times, and no more than one try is hit by one kill.
        pause = iter(range(100_000))

        def killed() -> bool:
            if not ended() and next(pause) % 5 == 0:
                kill_workers(running.process.pid)
            return bool(ended())

        running.wait_for(killed, WAIT, "for a worker that was killed")
        line = ended()[0]
        assert str(line["path"]) in ("root.input", "root.buffer")
        shutil.rmtree(tmp_path / "c" / "checkpoint")

        def said() -> bool:
            # Spark makes a part of it anew, which is not enough to go on with.
            texts = ("was removed or changed", "holds a Spark checkpoint but no streamer.json")
            return any(text in message for text in texts for message in running.messages())

        running.wait_for(said, WAIT, "for a checkpoint that is gone")
        says_no_trace(running)


DIRECT = """
http: {{ enabled: false }}
input: {{ file: {{ paths: [ {source} ] }} }}
pipeline: {{ processors: [ {{ label: add, mapping: 'root = this' }} ] }}
output: {{ file: {{ path: {out} }} }}
metrics: {{ prometheus: {{ file_output_path: {metrics} }} }}
spark: {{ master: 'local[2,4]' }}
"""


def test_what_a_task_counted_that_is_done_again_counts_once(tmp_path: Path, monkeypatch):
    more, fault = with_fault(
        tmp_path, "streamer.engine.stage.stateless_stage", "DirectStage", "frames", once=True
    )
    monkeypatch.setenv("PYTHONPATH", more["PYTHONPATH"])
    source, out, metrics = tmp_path / "in", tmp_path / "out", tmp_path / "metrics"
    source.write_text("".join(json.dumps({"n": n}) + "\n" for n in range(5_000)))
    fault.touch()
    config = tmp_path / "cars.yaml"
    config.write_text(DIRECT.format(source=source, out=out, metrics=metrics))
    with program(config, tmp_path / "c") as running:
        assert running.finish(WAIT) == 0
        assert not fault.exists(), "no task has failed"
        assert not failures(running), "Spark has not tried the task again by itself"
    assert len(out.read_text().splitlines()) == 5_000
    found = dict(re.findall(r'^(\w+)\{[^}]*path="root\.[^"]*"\} (\S+)$', metrics.read_text(), re.M))
    assert float(found["processor_received"]) == float(found["processor_sent"]) == 5_000
    assert float(found["output_sent"]) == float(found["input_received"]) == 5_000


FULL = """
http: { enabled: false }
input: { label: src, generate: { mapping: 'root.n = ksuid().repeat(400)', interval: 2ms } }
buffer: { system_window: { size: 1h } }
output: { drop: {} }
spark: { master: 'local[2]' }
"""


def test_a_full_disk_of_the_checkpoint_is_named(tmp_path: Path):
    config = tmp_path / "full.yaml"
    config.write_text(FULL)
    checkpoint = tmp_path / "c"
    with small_disk(checkpoint / "spark", 1 << 20), program(config, checkpoint) as running:
        line = told(running, "is full")
        assert f"the disk of the checkpoint {checkpoint} is full" in str(line["msg"])
        assert line["path"] == "root.buffer"
        says_no_trace(running)
