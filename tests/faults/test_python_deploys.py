"""A deploy of changed Python code while windows are open: they come out once, by the new code.

The oracle is plain Python: it has the events of each window, and knows which window was complete
before the deploy.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.deploying import write_over
from tests.faults.service import Service, service

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

CONFIG = """\
input: {{ http_server: {{ path: /post }} }}
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    key_mapping: root = this.id % 4
    size: 10s
pipeline:
  processors:
    - python: {{ call: 'own_windows:Windows', args: {{ log: {log} }} }}
    - python:
        code: |
          def process(row: dict) -> dict:
              return {{**row, "inline": {number}}}
output: {{ file: {{ path: {out}, codec: lines }} }}
spark: {{ shards: 2 }}
"""
MODULE = """\
import os

class Windows:
    def __init__(self, log):
        self.log = log

    def note(self, text):
        with open(self.log, "a") as out:
            out.write(f"{{text}} {number} {{os.getpid()}}\\n")

    def open(self):
        self.note("open")

    def process(self, window: list[dict], metadata: list) -> dict:
        return {{"module": {number}, "ids": [one["id"] for one in window],
                "key": metadata[0]["window_key"],
                "start": int(metadata[0]["window_start_unix_ms"]) // 1000}}

    def close(self):
        self.note("close")
"""
BEGAN = 1_767_261_600
EVENTS = 400
"""Ten in a second."""
DEPLOYED_AT = 150
"""The events before the deploys: those of the second window are in it."""


def post(running: Service, numbers: range | list[int], at: float = 0) -> None:
    for one in numbers:
        event = {"id": one, "at": at or BEGAN + one / 10}
        assert running.ask("POST", "/windows/post", event).status_code == 200


def wait_deployed(running: Service, revision: int) -> None:
    def is_deployed() -> bool:
        status = running.ask("GET", "/streams/windows").json()
        return (status.get("revision"), status.get("state")) == (revision, "running")

    running.wait_for(is_deployed, 120, f"for revision {revision}")


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def notes_of(log: Path) -> Counter[tuple[str, ...]]:
    return Counter(tuple(line.split()) for line in log.read_text().splitlines())


def test_open_windows_come_out_once_by_the_code_of_a_deploy(tmp_path: Path) -> None:
    out, log, streams = tmp_path / "out", tmp_path / "log", tmp_path / "streams"
    streams.mkdir()

    module, config = streams / "own_windows.py", streams / "windows.yaml"

    def code(number: int) -> str:
        return MODULE.format(number=number)

    def stream(number: int) -> str:
        return CONFIG.format(out=out, log=log, number=number)

    module.write_text(code(1))
    config.write_text(stream(1))
    with service(tmp_path / "s", str(streams), "-w") as running:
        running.wait_running()
        # The last window is open for each key: events of 10 to 15 s.
        post(running, range(DEPLOYED_AT))
        running.wait_for(lambda: len(rows_of(out)) == 4, 120, "for the windows before the deploys")
        write_over(module)(code(2))
        wait_deployed(running, 2)
        write_over(config)(stream(2))
        wait_deployed(running, 3)
        post(running, range(DEPLOYED_AT, EVENTS))
        post(running, [EVENTS], BEGAN + 86_400)
        running.wait_for(lambda: len(rows_of(out)) >= 16, 120, "for the windows after the deploy")
        assert running.stop() == 0
    rows = rows_of(out)
    windows = {(row["key"], row["start"]): row for row in rows}
    assert len(windows) == len(rows) == 4 * 4
    for (key, start), row in windows.items():
        at = (start - BEGAN) * 10
        expected = [one for one in range(at, at + 100) if one % 4 == int(key)]
        assert sorted(row["ids"]) == expected
        number = 1 if at == 0 else 2
        assert (row["module"], row["inline"]) == (number, number)
    notes = notes_of(log)
    opened = {note[1:] for note in notes if note[0] == "open"}
    assert {number for number, _ in opened} == {"1", "2"}
    assert {note[1:] for note in notes if note[0] == "close"} == opened
    assert set(notes.values()) == {1}
