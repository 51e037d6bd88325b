"""The page on earlier states: its commands share a stream's run, and print what the page says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.docs.test_docs import ROOT, blocks, installed, run

PAGE = ROOT / "streamer" / "docs" / "earlier-states.md"


@pytest.mark.spark
def test_the_commands_of_the_page_print_what_it_says(tmp_path: Path) -> None:
    walk = [block for block in blocks(PAGE) if block.info == "sh states"]
    assert [block.text.split("streamer state ")[1].split()[0] for block in walk] == [
        *("list", "diff", "export", "start")
    ]
    command = installed(tmp_path)
    for number, block in enumerate(walk):
        # The messages that an earlier command has added stay.
        page = block.page if number == 0 else tmp_path / "empty.md"
        page.touch()
        done = run(replace(block, page=page), tmp_path, command)
        assert done.returncode == 0, done.stderr
        assert done.stdout == block.prints
    table = pyarrow.parquet.read_table(tmp_path / "windows.parquet")
    assert table["key"].to_pylist() == ["a", "b"] and table["messages"].to_pylist() == [2, 1]
    assert set(table["micro_batch"].to_pylist()) == {0}
