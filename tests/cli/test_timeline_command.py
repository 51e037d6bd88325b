"""`streamer timeline`: options, forms and mistakes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamer.cli.main import invoke


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("w.yaml").write_text(
        "buffer: {system_window: {timestamp_mapping: root = this.at, size: 10s}}\n"
    )
    lines = [f'{{"at":"2026-11-21T10:00:0{n}Z"}}' for n in range(1, 4)]
    Path("s.ndjson").write_text("\n".join(lines) + "\n\n")
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert invoke(["timeline", "w.yaml", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_a_timeline_of_a_file(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "--input", "s.ndjson")
    assert "\x1b" not in out
    assert out.endswith("3 messages · 1 window · none dropped\n")


def test_a_timeline_of_the_standard_input(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = io.BytesIO(Path("s.ndjson").read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
    assert "3 messages" in told(capsys, "--input", "-")


def test_the_clock_is_what_the_options_say(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = ("--clock", "2026-11-21T10:00:05Z", "--step", "5s")
    found = json.loads(told(capsys, "--input", "s.ndjson", "--format", "json", *clock))
    assert [one["arrived"][17:19] for one in found["messages"]] == ["05", "10", "15"]
    assert [one.get("dropped") for one in found["messages"]] == [None, None, "late"]


def test_a_limit_takes_the_first_messages(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "3 messages · " in told(capsys, "--input", "s.ndjson", "--limit", "3")
    assert invoke(["timeline", "w.yaml", "--input", "s.ndjson", "--limit", "2"]) == 0
    out, err = capsys.readouterr()
    # What the sample does not show would be in windows too.
    assert "only the first 2 messages: windows at the end would hold more · " in out
    assert "closes as the input ends" not in out
    assert err == "there are more messages; these are the first 2 (--limit)\n"


def test_a_drawing_goes_to_a_file(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "--input", "s.ndjson", "--format", "svg", "-o", "w.svg") == ""
    assert Path("w.svg").read_text().startswith("<svg ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "no.ndjson"], "error: --input no.ndjson: no such file or directory\n"),
        (["--input", "s.ndjson", "--step", "5x"], "error: --step 5x: "),
        (
            ["--input", "s.ndjson", "--step", "-5s"],
            "error: --step -5s: time does not run backwards",
        ),
        (["--input", "s.ndjson", "--clock", "noon"], "error: --clock noon: expected an RFC 3339"),
        (["--input", "s.ndjson", "--arrival", "root ="], "error: --arrival: line 1 char 7"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(
    arguments: list[str], said: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["timeline", "w.yaml", *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
