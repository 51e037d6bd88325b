"""The page on canaries: its commands run in order against a service, and print what it says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from streamer.service.fleet.canaries import CANARY_DIRECTORY
from tests.docs.test_docs import ROOT, blocks
from tests.faults.service import service
from tests.forked import forked_commands

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WARMING = "input: { generate: { interval: 1s, mapping: root = 1 } }\noutput: { drop: {} }\n"
PAGE = ROOT / "streamer" / "docs" / "canary.md"


def test_the_walk_prints_what_the_page_says(tmp_path: Path) -> None:
    found = blocks(PAGE)
    for block in found:
        if block.info.startswith("yaml config="):
            (tmp_path / block.name).write_text(block.text)
    walk = [block for block in found if block.info == "sh canary"]
    assert len(walk) == 5
    (tmp_path / "bin").mkdir()
    with service(tmp_path / "s") as running, forked_commands(tmp_path / "bin") as command:
        running.wait_running()
        # The first stream of a service waits for workers to start, which takes its time.
        assert running.ask("POST", "/streams/first", WARMING).status_code == 200
        running.wait_for(
            lambda: running.ask("GET", "/streams/first/progress").json()["micro_batch"] >= 0,
            240,
            "for a micro-batch",
        )
        env = {
            **os.environ,
            "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "STREAMER_URL": str(running.client.base_url).rstrip("/"),
            "NO_COLOR": "1",
        }
        for block in walk:
            done = subprocess.run(
                ["sh", "-euc", block.text],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                timeout=240,
            )
            assert done.returncode == 0, done.stderr
            if block.prints:
                assert done.stdout == block.prints
        left = tmp_path / "s" / "c" / ".service" / CANARY_DIRECTORY
        assert not left.exists()
