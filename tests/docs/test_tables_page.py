"""The page on tables: its config makes the table, and its program reads what is in it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import ROOT, blocks

PAGE = ROOT / "streamer" / "docs" / "tables.md"


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_walk_leads_to_a_table_that_others_read(tmp_path: Path) -> None:
    found = blocks(PAGE)
    [config] = [block for block in found if block.info == "yaml config=lakehouse.yaml"]
    [commands] = [block for block in found if block.info == "sh lakehouse"]
    [program] = [block for block in found if block.info == "python lakehouse"]
    (tmp_path / "lakehouse.yaml").write_text(config.text)
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    # By themselves, and not by a shell: what takes too long is ended, and nothing stays.
    walk = [shlex.split(line) for line in commands.text.splitlines()]
    for command in (*walk, [sys.executable, "-c", program.text]):
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
    rows = eval(done.stdout)
    assert [light for light, _, _ in rows] == [f"light-{number}" for number in range(4)]
    assert {windows for _, windows, _ in rows} == {10}
    assert sum(cars for _, _, cars in rows) == sum(number % 3 for number in range(2000))
