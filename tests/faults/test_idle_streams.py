"""What streams cost that have nothing to do, and what a few busy ones beside them add."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime
from pathlib import Path

import pytest

from tests.faults.service import Service, service
from tests.processes import descendants
from tests.slowness import wall_slowness

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]

# By hand: STREAMER_IDLE=50 STREAMER_BUSY=10 STREAMER_SECONDS=60, on two cores.
IDLE = int(os.environ.get("STREAMER_IDLE", "6"))
BUSY = int(os.environ.get("STREAMER_BUSY", "1"))
SECONDS = float(os.environ.get("STREAMER_SECONDS", "10"))

OPEN = """\
input: { http_server: { path: /post } }
buffer: { tumbling_window: { timestamp_mapping: root = now(), size: 1h } }
output: { drop: {} }
"""
COUNTING = """\
input: { generate: { interval: 1s, mapping: root.at = now() } }
buffer: { tumbling_window: { timestamp_mapping: root = this.at, size: 5s } }
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {
          {"end": meta("window_end_timestamp"), "at": now(), "events": batch_size()}
        } else { deleted() }
output: { file: { path: %s, codec: lines } }
"""


def spent(root: int) -> float:
    """Return the CPU seconds of a process and all that it has started and that still runs."""
    ticks = 0
    for pid in descendants(root):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def cores(running: Service) -> float:
    before, began = spent(running.process.pid), time.monotonic()
    time.sleep(SECONDS)
    return (spent(running.process.pid) - before) / (time.monotonic() - began)


def late(out: Path) -> list[float]:
    """Return by how many seconds windows came after their ends."""
    found = [json.loads(line) for line in out.read_bytes().split(b"\n")[:-1]]
    times = [
        [datetime.fromisoformat(one[name][:26].rstrip("Z")) for name in ("at", "end")]
        for one in found
    ]
    return [(at - end).total_seconds() for at, end in times]


def test_idle_streams_cost_next_to_nothing_and_windows_close_on_time(tmp_path: Path) -> None:
    with service(tmp_path / "s") as running:
        running.wait_running()
        for number in range(IDLE):
            name = f"idle{number}"
            assert running.ask("POST", f"/streams/{name}", OPEN).status_code == 200
            assert running.ask("POST", f"/{name}/post", '{"a": 1}').status_code == 200
        running.wait_for(
            lambda: all(one["open_windows"] == 1 for one in running.streams().values()),
            600,
            "for all windows to be open",
        )
        # Until those who have delivered of late are taken to be idle again.
        time.sleep(35 if IDLE > 6 else 5)
        idle = cores(running)
        outs = [tmp_path / f"busy{number}.jsonl" for number in range(BUSY)]
        for number, out in enumerate(outs):
            answer = running.ask("POST", f"/streams/busy{number}", COUNTING % out)
            assert answer.status_code == 200, answer.text
        running.wait_for(lambda: all(out.exists() for out in outs), 300, "for windows of all")
        known = [len(late(out)) for out in outs]
        busy = cores(running)
        for out, n in zip(outs, known, strict=True):
            print(out.name, n, [round(x, 1) for x in late(out)])
        lateness = [x for out, n in zip(outs, known, strict=True) for x in late(out)[n:]]
        print(f"idle {idle:.3f} cores, busy {busy:.3f} cores, late {max(lateness):.2f} s")
        assert lateness
        assert idle <= 0.2, "cores"
        assert busy <= idle + 1, "cores"
        assert max(lateness) <= 5 * wall_slowness(), "seconds"
        assert running.stop() == 0
