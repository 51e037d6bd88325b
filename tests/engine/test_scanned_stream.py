"""A stream from files that a scanner cuts: tasks that are tried again, and starts in between."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from streamer.sdk.input.replayable import Limit

from .stream import Run

SECOND = 10**9
T = 1_700_000_000 * SECOND

CONFIG = """
input:
  file:
    paths: [ '*.csv', '*.gz' ]
    scanner:
      switch:
        - re_match_name: '\\.csv$'
          scanner: { csv: {} }
        - scanner: { decompress: { algorithm: gzip, into: { json_documents: {} } } }
pipeline:
  processors:
    - mapping: 'root.n = this.n.number()'
output: { stdout: {} }
"""


@pytest.mark.parametrize("most", [1, 3, 7, 1000])
def test_every_message_is_written_once_though_tasks_and_starts_are_many(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("n\n" + "".join(f'"{n}"\n' for n in range(10)))
    (tmp_path / "b.csv").write_text("n\n" + "".join(f"{n}\n" for n in range(10, 15)))
    documents = "".join(f'{{"n":{n}}} ' for n in range(15, 25))
    (tmp_path / "c.gz").write_bytes(gzip.compress(documents.encode()))
    written, state = "", None
    for start in range(100):
        run = Run(CONFIG, state, f"start {start}")
        ended = run.step(T + start * SECOND, Limit(most), tries=2).ended
        written += run.outs[0].getvalue().decode()
        state = run.state
        if ended:
            break
    assert [json.loads(line)["n"] for line in written.splitlines()] == list(range(25))
    assert start >= 24 // most
