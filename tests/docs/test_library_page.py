"""The page on streams in Python: all that it shows runs, and prints what it says."""

from __future__ import annotations

import doctest
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import streamer
from tests.docs.test_docs import ROOT, blocks

PAGE = ROOT / "streamer" / "docs" / "library.md"


def write_files(directory: Path) -> None:
    for block in blocks(PAGE):
        if block.info.startswith("yaml config"):
            (directory / block.name).write_text(block.text)


def test_checks_and_simulations_print_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = "\n".join(block.text for block in blocks(PAGE) if block.info == "python library")
    example = doctest.DocTestParser().get_doctest(text, {}, "library.md", str(PAGE), 0)
    out: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(example, out=out.append)
    assert (runner.summarize(verbose=False).failed, runner.tries >= 10) == (0, True), "".join(out)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_programs_run(tmp_path: Path) -> None:
    write_files(tmp_path)
    text = "\n".join(block.text for block in blocks(PAGE) if block.info == "python library-spark")
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        *("ended 600", "speeds True", "[19, 20, 20]", "[{'windows': 31}]")
    ]
    lines = (tmp_path / "speeds.jsonl").read_text().splitlines()
    # The second start has begun again from the beginning, since the input had ended.
    assert sum(json.loads(line)["cars"] for line in lines) == 2 * 600


def test_the_page_lists_all_public_methods() -> None:
    text = PAGE.read_text()
    names = {name for name in dir(streamer.StreamHandle) if name[0] != "_"} - {"name"}
    assert [name for name in sorted(names) if f"| `{name}" not in text] == []
    assert [name for name in dir(streamer.Stream) if name[0] != "_" and name not in text] == []
