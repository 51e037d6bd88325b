"""`streamer why` on checkpoints of earlier versions: without a journal, and with one.

`tests/data/decisions` has a journal of each version that writes one, of the stream of
`tests/cli/test_why_command.py`.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from streamer.cli.main import invoke
from streamer.engine.driver.decision_journal import DecisionJournal, read_decisions
from tests.cli.test_why_command import CONFIG
from tests.spark.upgrades.streams import config_of, streams_of
from tests.spark.upgrades.test_upgrades import ARCHIVES, VERSIONS

JOURNALS = ARCHIVES.parent / "decisions"
NAME = "tumbling_keyed"

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_checkpoint_without_a_journal_says_so(
    tmp_path: Path, capsys: Captured, version: str
) -> None:
    with tarfile.open(ARCHIVES / version / f"{NAME}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    config = tmp_path / "config.yaml"
    config.write_text(config_of(streams_of(version)[NAME], str(tmp_path / "out"), 1))
    directory = tmp_path / "checkpoint"
    command = ["why", str(config), "--checkpoint", str(directory)]
    assert invoke(command) == 1
    assert f"there is no journal of decisions in {directory}" in capsys.readouterr().err
    # From the first micro-batch after the upgrade on there is one.
    identity = json.loads((directory / "streamer.json").read_text()).get("identity", "")
    journal = DecisionJournal(directory, identity)
    buffers = {"": {"watermark": None, "blame": None, "held": 3, "bytes": 9, "dropped": {}}}
    record = {"batch": 4, "time": 0, "buffers": buffers, "closed": [], "dropped": []}
    assert journal.append(record)
    journal.close()
    assert invoke([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["journal"]["first_micro_batch"] == 4


@pytest.mark.parametrize("path", sorted(JOURNALS.iterdir()), ids=lambda path: path.name)
def test_a_journal_of_another_version_is_read(tmp_path: Path, capsys: Captured, path: Path) -> None:
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    assert [record["batch"] for record in read_decisions(tmp_path / "checkpoint")] == [7]
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    command = ["why", str(config), "--checkpoint", str(tmp_path / "checkpoint")]
    assert invoke([*command, "--message", "early", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["clocks"][0]["held_by"]["name"] == "slow"
    assert answer["messages"][0]["event_time"] == "2026-11-21T10:00:04Z"
