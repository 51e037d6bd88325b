"""The page on results: its command lists the files, and its program reads the newest of them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from tests.docs.test_docs import ROOT, blocks
from tests.engine.results.kept import Row, T, portion, store

PAGE = ROOT / "streamer" / "docs" / "results.md"


def test_the_files_of_results_are_read_as_the_page_says(tmp_path: Path) -> None:
    found = blocks(PAGE)
    [command] = [block for block in found if block.info == "sh results"]
    [program] = [block for block in found if block.info == "python results"]
    kept = store(tmp_path / "checkpoint" / "results")
    for batch in range(20):
        kept.write(batch, [portion([Row("a", T, b"%d" % batch), Row("b", T, b"0")])], T)
    words = shlex.split(command.text.replace("clicks.yaml", "checkpoint"))
    assert words[0] == "streamer" and words[-2] == ">"
    with (tmp_path / words[-1]).open("wb") as out:
        listed = [sys.executable, "-m", "streamer.cli.main", *words[1:-2]]
        subprocess.run(listed, cwd=tmp_path, stdout=out, check=True, timeout=60)
    done = subprocess.run(
        [sys.executable, "-c", program.text],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "a 2023-11-14 22:13:10 19\nb 2023-11-14 22:13:10 0\n"
