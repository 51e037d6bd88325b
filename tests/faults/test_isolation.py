"""What breaks down in one stream of the service is nothing to the others.

The process that runs one stream's pipeline is killed with every message, as the kernel does when
memory runs out; of another one, what its checkpoint holds is written over while it is paused. A
third gets a revision that fails, and goes back to the one before by itself.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.service import Service, service
from tests.slowness import wall_slowness

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

# STREAMER_UNTIL_FAILED=1 waits until both were tried and started again as often as they may be.
UNTIL_FAILED = bool(os.environ.get("STREAMER_UNTIL_FAILED"))
# Between two messages of the stream that is well. A planner or a worker takes long to start anew.
LONGEST_GAP = 10.0

GOOD = """\
input: { generate: { mapping: 'root.id = count("good") - 1', interval: 50ms } }
output: { file: { path: %s } }
"""
KILLED = """\
input: { generate: { mapping: root = 1, interval: 1s } }
pipeline: { processors: [ { command: { name: sh, args_mapping: '[ "-c", "kill -9 $PPID" ]' } } ] }
output: { drop: {} }
"""
WRONG = """\
input: { generate: { mapping: root = 1, interval: 1s } }
pipeline: { processors: [ { mapping: root = throw("no good") } ] }
output: { drop: {} }
error_handling: { strict: true }
"""
POISONED = """\
input: { generate: { mapping: root = 1, interval: 50ms } }
buffer: { system_window: { size: 1h } }
output: { drop: {} }
"""


def held(checkpoint: Path) -> Iterator[Path]:
    """Return the files that Spark keeps offsets and open windows in."""
    for path in checkpoint.rglob("*"):
        if path.is_file() and {"offsets", "state"} & {*path.relative_to(checkpoint).parts}:
            yield path


def poison(checkpoint: Path) -> int:
    """Write over what a checkpoint holds; return how many files that were."""
    files = [*held(checkpoint)]
    for path in files:
        path.write_bytes(os.urandom(64))
        # What it was is written beside it.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return len(files)


def numbers(out: Path) -> list[int]:
    lines = out.read_bytes().split(b"\n")[:-1] if out.exists() else []
    return [json.loads(line)["id"] for line in lines]


def told(running: Service, name: str) -> str:
    """Return what is wrong with a stream, once that is known for good; empty until then."""
    status = running.streams()[name]
    if UNTIL_FAILED and status["state"] != "failed":
        return ""
    return str(status["reason"])


def crashes(running: Service, name: str) -> float:
    """Return how many messages of a stream have ended their worker."""
    for line in running.ask("GET", "/metrics").text.splitlines():
        if line.startswith("processor_crashed{") and f'stream="{name}"' in line:
            return float(line.rsplit(" ", 1)[1])
    return 0.0


@pytest.mark.smoke
def test_a_worker_that_dies_a_checkpoint_of_garbage_and_a_wrong_revision_are_one_streams_each(
    tmp_path: Path,
) -> None:
    out = tmp_path / "good.jsonl"
    with service(tmp_path / "s", "--allow-programs", "--restarts", "1") as running:
        running.wait_running()
        for name, config in (("good", GOOD % out), ("poisoned", POISONED)):
            answer = running.ask("POST", f"/streams/{name}", config)
            assert answer.status_code == 200, answer.text
        running.wait_for(lambda: bool(numbers(out)), 180, "for the first message")
        running.wait_for(
            lambda: running.ask("GET", "/streams/poisoned/windows").json()["messages"] > 0,
            *(180, "for an open window"),
        )
        assert running.ask("POST", "/streams/poisoned/pause").status_code == 200
        assert poison(tmp_path / "s" / "c" / "poisoned") > 2
        # It may be found out at once, or while it runs.
        resumed = running.ask("POST", "/streams/poisoned/resume")
        assert resumed.status_code in (200, 502)
        at_once = resumed.text if resumed.status_code == 502 else ""
        assert running.ask("POST", "/streams/killed", KILLED).status_code == 200
        right = WRONG.replace('throw("no good")', "this")
        assert running.ask("POST", "/streams/changed", right).status_code == 200
        changed = running.ask("PUT", "/streams/changed?rollback_on_failure=true", WRONG)
        assert changed.json()["revision"] == 2
        longest, grew, count = 0.0, time.monotonic(), len(numbers(out))

        def both_are_told() -> bool:
            nonlocal longest, grew, count
            now, found = time.monotonic(), len(numbers(out))
            longest = max(longest, now - grew)
            if found > count:
                grew, count = now, found
            return bool(at_once or told(running, "poisoned")) and crashes(running, "killed") > 0

        running.wait_for(both_are_told, 150, "for the reasons")
        print("longest gap", longest, {n: s for n, s in running.streams().items()})
        running.wait_for(
            lambda: running.streams()["changed"]["revision"] == 3, 120, "for the former revision"
        )
        assert "throw" not in running.ask("GET", "/streams/changed").text
        last = len(numbers(out))
        running.wait_for(lambda: len(numbers(out)) > last + 20, 60, "for the good one to go on")
        good = running.streams()["good"]
        assert (good["state"], good["restarts"], good["reason"]) == ("running", 0, "")
        assert longest < LONGEST_GAP * wall_slowness()
        damage = f"the checkpoint {tmp_path}/s/c/poisoned is damaged"
        assert damage in (at_once or told(running, "poisoned"))
        assert running.ask("GET", "/good/ready").status_code == 200
        # Each of its messages ends its worker, is marked as failed, and goes on.
        said = [one["msg"] for one in running.lines() if one.get("stream") == "killed"]
        assert any("marked as failed" in text and "SIGKILL" in text for text in said), said
        # Nobody but they said anything.
        errors = [one for one in running.lines() if one.get("level") in ("error", "warn")]
        assert {one.get("stream") for one in errors} <= {"poisoned", "killed", "changed"}, errors
        assert running.stop() == 0
    found = numbers(out)
    assert found == list(range(len(found)))
