"""A config's mapping changes while windows are open: through Spark's offsets, state and workers."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streamer.engine.report.stream_metrics import Snapshot

from .conftest import Ran

pytestmark = pytest.mark.spark

SIZE = 10
CONFIG = """
input:
  file: {{paths: [{path}]}}
buffer:
  system_window:
    timestamp_mapping: root = this.at
    size: 10s
    end_of_input: keep
pipeline:
  processors:
    - group_by_value: {{value: '${{! json("light") }}'}}
    - mapping: |
        root = if batch_index() == 0 {{
          {{"{name}": {asked}, "end": meta("window_end_timestamp")}}
        }} else {{ deleted() }}
spark: {{checkpoint: state, trigger_interval: 100ms}}
"""
SUM = 'json("n").from_all().sum()'
UNIQUE = 'json("n").from_all().unique()'


def test_an_open_window_finishes_on_its_mapping_and_the_next_one_has_the_new(run_stream, tmp_path):
    # The first window has to be open when the program has started a second time.
    for lead in (SIZE, 3 * SIZE, 18 * SIZE):
        directory = tmp_path / str(lead)
        directory.mkdir()
        end = (int(time.time()) // SIZE + 1) * SIZE + lead
        if started_twice_by(end, directory / "cars.jsonl", run_stream):
            break
        for state in (tmp_path / "checkpoint", tmp_path / "state"):
            shutil.rmtree(state, ignore_errors=True)
    else:
        pytest.fail("it takes the program more than three minutes to start twice")
    path = directory / "cars.jsonl"
    changed = CONFIG.format(path=path, name="which", asked=UNIQUE)
    # By now it is known how far the windows of the former mapping reach.
    write(path, [(end + SIZE + 1, 16), (end + SIZE + 2, 32)])
    third = run_stream(changed.replace("end_of_input: keep", "end_of_input: flush"))
    assert windows(third) == [{"which": [8]}, {"which": [16, 32]}]
    offsets = sorted((tmp_path / "checkpoint" / "spark" / "offsets").glob("[0-9]*"), key=number)
    said = [json.loads(offset.read_text().splitlines()[-1])["folded"] for offset in offsets]
    identities = list(dict.fromkeys(identity for identity, _ in said))
    assert len(identities) == 2 and said[0] == [identities[0], None]
    # The message of the new mapping's first micro-batch reached into the window after.
    assert said[-1] == [identities[1], (end + SIZE) * 10**9]


def started_twice_by(end: int, path: Path, run_stream: Callable[..., Ran]) -> bool:
    """Open a window, start again with another mapping, see it close; tell if that was in time."""
    write(path, [(end - 1, 1), (end - 2, 2)])
    first = run_stream(
        CONFIG.format(path=path, name="sum", asked=SUM), until=lambda now: now.held == 2
    )
    assert first.lines == []
    write(path, [(end - 3, 4), (end + 1, 8)])
    waiting = CONFIG.format(path=path, name="which", asked=UNIQUE)
    waiting = waiting.replace("end_of_input: keep", "end_of_input: wait")
    began: list[float] = []

    def closed(now: Snapshot) -> bool:
        if now.messages == 4 and not began:
            began.append(time.time())
        # The first window closes by the clock, in a micro-batch of its own.
        return now.messages == 4 and (now.held == 1 or began[0] >= end)

    second = run_stream(waiting, until=closed)
    if not began or began[0] >= end:
        return False
    assert windows(second) == [{"sum": 7}]
    return True


def windows(ran: Ran) -> list[dict]:
    found = [json.loads(line) for line in ran.lines]
    return [{name: value for name, value in one.items() if name != "end"} for one in found]


def number(path: Path) -> int:
    return int(path.name)


def write(path: Path, cars: list[tuple[int, int]]) -> None:
    with path.open("a") as file:
        for at, n in cars:
            file.write(json.dumps({"at": at, "light": "a", "n": n}) + "\n")
