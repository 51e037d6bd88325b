"""Every command on a terminal and on a pipe: help, exit codes, colours."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from streamer.cli.main import _COMMANDS, invoke

CONFIG = """\
input: { file: { paths: [in.jsonl] } }
buffer: { system_window: { timestamp_mapping: root = this.at, size: 10s } }
output: { drop: {} }
"""
TOOLS = [
    ["graph", "c.yaml"],
    ["timeline", "c.yaml", "--input", "in.jsonl"],
    ["tap", "c.yaml"],
    ["dry-run", "c.yaml"],
    ["docs", "windows"],
    ["list", "buffers", "system_window"],
]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(CONFIG)
    Path("in.jsonl").write_text('{"at":1}\n{"at":30}\n{"at":2}\n')
    return tmp_path


def on_a_terminal(arguments: list[str], **more: str) -> str:
    """Return what a command prints on a terminal."""
    ours, theirs = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    root = str(Path(__file__).parents[2])
    env |= {"TERM": "xterm", "PAGER": "cat", "PYTHONPATH": root, **more}
    command = [sys.executable, "-m", "streamer.cli.main", *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=env):
        os.close(theirs)
        parts = []
        # A terminal whose other side has been closed cannot be read.
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            parts.append(part)
    os.close(ours)
    return b"".join(parts).decode()


@pytest.mark.parametrize("name", _COMMANDS)
def test_a_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([name, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"Usage: streamer {name} ")
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("name", _COMMANDS)
def test_an_option_that_there_is_not_is_a_mistake(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # 1 says that rows differ.
    assert invoke([name, "--no-such-option"]) == (2 if name == "compare" else 1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "No such option" in err


@pytest.mark.parametrize("arguments", TOOLS, ids=lambda arguments: arguments[0])
def test_nothing_is_coloured_on_a_pipe(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(arguments) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [TOOLS[0], TOOLS[4]], ids=lambda arguments: arguments[0])
def test_colours_are_for_terminals(arguments: list[str]) -> None:
    assert "\x1b[1m" in on_a_terminal(arguments)


def test_an_error_is_coloured_on_a_terminal() -> None:
    assert "\x1b[31merror:\x1b[0m there is no page" in on_a_terminal(["docs", "windos"])


@pytest.mark.parametrize("arguments", [TOOLS[0], ["docs", "windos"]], ids=["result", "error"])
def test_nobody_who_wants_no_colours_gets_any(arguments: list[str]) -> None:
    assert "\x1b" not in on_a_terminal(arguments, NO_COLOR="1")


def test_a_config_is_printed_without_colours_on_a_terminal_too() -> None:
    assert "\x1b" not in on_a_terminal(["echo", "c.yaml"])


def test_whoever_types_is_told_how_it_ends() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "streamer.cli.main", "timeline", "c.yaml"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as program:
        os.close(theirs)
        assert program.stderr is not None
        assert program.stderr.readline().startswith(b"reading the standard input; Ctrl-D ends it;")
        os.write(ours, b'{"at":1}\n\x04')
        out, err = program.communicate(timeout=60)
    os.close(ours)
    assert (program.returncode, err) == (0, b"")
    assert b"#1" in out
