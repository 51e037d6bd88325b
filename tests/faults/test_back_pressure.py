"""A sink that blocks for three windows: old windows are dropped and counted, or kept, as asked."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from .program import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CONFIG = """
input:
  generate:
    interval: 20ms
    mapping: |
      root.id = count("id") - 1
      root.pad = "x".repeat(20000)
buffer:
  system_window: {{size: 10s, on_expired: {on_expired}}}
pipeline:
  processors:
    - mapping: |
        root.id = this.id
        root.end = meta("window_end_timestamp")
        # More than a pipe holds: the program blocks in the middle of a window.
        root.pad = this.pad
output: {{stdout: {{}}}}
spark: {{master: "local[2]"}}
"""


def test_a_sink_that_blocks_for_three_windows(tmp_path):
    # Both wait most of the time, so they run side by side.
    with ThreadPoolExecutor() as pool:
        for run in [pool.submit(blocked, tmp_path / mode, mode) for mode in ("drop", "keep")]:
            run.result()


def blocked(directory: Path, on_expired: str) -> None:
    directory.mkdir()
    config = directory / "blocked.yaml"
    config.write_text(CONFIG.format(on_expired=on_expired))
    read_end, write_end = os.pipe()
    received: list[dict] = []
    with program(config, directory / "checkpoint", stdout=write_end) as running:
        os.close(write_end)
        pipe = os.fdopen(read_end, "rb")

        def read_window() -> None:
            """Read until a window after those read so far has come, whole or in part."""
            ends = {line["end"] for line in received}
            while len({line["end"] for line in received} - ends) < 1:
                line = pipe.readline()
                assert line, running.messages()[-10:]
                received.append(json.loads(line))

        running.wait_running()
        read_window()
        # Nobody reads for more than three lengths of a window.
        time.sleep(38)
        for _ in range(4):
            read_window()
        running.process.terminate()
        received += [json.loads(line) for line in pipe]
        assert running.process.wait(60) == 0
        lines = running.lines()
    check(lines, [line["id"] for line in received], on_expired)


def check(lines: list[dict], ids: list[int], on_expired: str) -> None:
    assert len(ids) == len(set(ids)), "nothing comes twice"
    farewell = lines[-1]
    expired = [line for line in lines if "expired" in str(line.get("msg", "")).lower()]
    missing = farewell["messages"] - len(ids) - farewell.get("held", 0)
    if on_expired == "keep":
        assert not expired and "dropped" not in farewell
        assert missing == 0, "nothing is lost"
        assert ids == list(range(len(ids)))
        return
    assert expired, "expired windows are logged"
    assert farewell["dropped"] > 0
    assert missing == farewell["dropped"], "what is missing is what was counted"
    # The windows before the block and those at its end survive whole.
    gaps = [b - a for a, b in pairwise(ids) if b != a + 1]
    assert len(gaps) == 1, f"one stretch is missing, in the middle: {gaps}"
