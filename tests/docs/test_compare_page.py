"""The page on comparisons: its commands run Benthos and this program, and print what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import ROOT, blocks
from tests.servers.benthos import benthos

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PAGE = ROOT / "streamer" / "docs" / "compare.md"


def test_the_commands_of_the_page_print_its_tables(tmp_path: Path) -> None:
    every = blocks(PAGE)
    for block in every:
        if block.info.startswith(("yaml config=", "json file=")):
            (tmp_path / block.name).write_text(block.text)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "benthos").symlink_to(benthos())
    (tmp_path / "bin" / "streamer").symlink_to(Path(sys.executable).with_name("streamer"))
    before = set(tmp_path.iterdir())
    env = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
    }
    walk = [block for block in every if block.info == "sh compare"]
    assert len(walk) == 2
    for block in walk:
        done = subprocess.run(
            ["sh", "-euc", block.text],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == block.prints, done.stderr
    # Neither a row, nor a checkpoint, nor a file on the way is left.
    left = {one.name for one in set(tmp_path.iterdir()) - before}
    # Java and Python that have started are shared by all programs of this machine.
    shared = ("streamer-java-", "streamer-python-")
    assert {one for one in left if not one.startswith(shared)} == {"old.yaml"}
