"""`streamer tap`: from the input or a file, as text or JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer.cli.main import invoke

CONFIG = """\
input: { file: { paths: [in.jsonl] } }
pipeline: { processors: [ mapping: root.b = this.a + 1 ] }
output: { file: { path: out.jsonl } }
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(CONFIG)
    Path("in.jsonl").write_text("".join(f'{{"a":{n}}}\n' for n in range(20)))
    Path("other.jsonl").write_text('{"a":100}\n')
    return tmp_path


def test_the_first_ten_messages_of_the_input_are_shown_and_nothing_is_written(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["tap", "-c", "c.yaml"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    heads = [line for line in out.splitlines() if line and not line.startswith(" ")]
    assert heads == [
        "input: file, 10 messages",
        "pipeline.processors.0: mapping, 10 messages",
        "output: file, 10 messages (nothing is written)",
    ]
    assert not Path("out.jsonl").exists()


def test_messages_of_a_file_come_instead_of_the_input_s(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["tap", "c.yaml", "-n", "5", "--input", "other.jsonl", "--format", "json"]
    assert invoke(arguments) == 0
    stages = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [stage["component"] for stage in stages] == ["file", "mapping", "file"]
    assert [stage["batches"][0][0]["json_content"] for stage in stages] == [
        {"a": 100},
        {"b": 101},
        {"b": 101},
    ]


def test_an_input_that_cannot_be_read_is_an_error(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("in.jsonl").unlink()
    assert invoke(["tap", "c.yaml"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: input file: there is no file 'in.jsonl'")
