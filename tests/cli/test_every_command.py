"""Every command: its help, its exit codes, and what it prints on a pipe and on a terminal."""

from __future__ import annotations

import os
import pty
import re
import shlex
import sys
import threading
import tty
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from streamer.cli.main import cli, invoke
from tests.engine.results.kept import Row, keep

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
FILES = {
    "good.yaml": "input: {generate: {mapping: root = 1, count: 1}}\noutput: {drop: {}}\n",
    "bad.yaml": "inptu: {}\n",
    "tested.yaml": "pipeline: {processors: [{mapping: root = this.a}]}\n"
    'tests: [{name: one, input_batch: [{content: \'{"a":"x"}\'}], '
    "output_batches: [[{content_equals: x}]]}]\n",
    "failing.yaml": "pipeline: {processors: [{mapping: root = this.a}]}\n"
    'tests: [{name: one, input_batch: [{content: \'{"a":"y"}\'}], '
    "output_batches: [[{content_equals: x}]]}]\n",
    "windows.yaml": "buffer: {system_window: {size: 10s}}\n",
    "past.yaml": "input: {file: {paths: [in.json]}}\noutput: {stdout: {}}\n",
    "empty.yaml": "input: {stdin: {}}\n",
    "in.env": 'A=1\nB="two words"\n',
    "bad.env": "A: 1\n",
    "in.json": '{"a":"x"}\n',
}
NEW_YEAR = "2026-01-01T00:00:00Z"
SAID = "bad.yaml(1,1) field inptu not recognised; did you mean input?"


class Case(NamedTuple):
    """One call.

    Attributes:
        arguments: the command line.
        code: the exit code.
        out: what its standard output holds; nothing is printed there when empty.
        err: what its standard error stream holds; the same.
        coloured: whether it has colours on a terminal.
    """

    arguments: str
    code: int
    out: str = ""
    err: str = ""
    coloured: bool = False


CASES = (
    Case("--help", 0, "Usage: streamer"),
    Case("--version", 0, "Version: "),
    Case("nope", 1, "", "there is no command 'nope'"),
    Case("run bad.yaml", 1, "", SAID, coloured=True),
    Case("run nope.yaml", 1, "", "nope.yaml(1,1) there is no such file", coloured=True),
    Case("streams bad.yaml", 1, "", SAID, coloured=True),
    Case("streams nope.yaml", 1, "", "nope.yaml: there is no such file", coloured=True),
    Case("streams -o good.yaml", 1, "", "field input is for the config of a stream", coloured=True),
    Case("streams --restarts x", 1, "", "'x' is not a valid integer"),
    *(
        Case(f"{command} --url http://127.0.0.1:9", 1, "", "there is no answer", coloured=True)
        for command in (
            *("deploy good.yaml", "list-streams", "windows a", "logs a", "pause a", "resume a"),
            *("rollback a", "canary a", "deploy good.yaml --canary"),
        )
    ),
    Case("deploy nope.yaml", 1, "", "nope.yaml(1,1) there is no such file", coloured=True),
    Case("pause a --url nowhere", 1, "", "--url is 'nowhere'", coloured=True),
    Case("compare good.yaml", 2, "", "name the other program"),
    Case("compare bad.yaml --benthos nope --record 1", 2, "", SAID, coloured=True),
    Case("lint good.yaml", 0),
    Case("lint bad.yaml", 1, "", f"{SAID} [unknown_field]", coloured=True),
    Case("lint --verbose good.yaml", 0, "good.yaml: OK", coloured=True),
    Case("lint -e in.env good.yaml", 0),
    Case("lint -e bad.env good.yaml", 1, "", "bad.env(1,1) expected NAME=value", coloured=True),
    Case("explain --chilled bad.yaml", 0, "stream bad", SAID, coloured=True),
    Case("run --on-reset drain good.yaml", 1, "", "add -w"),
    Case("run -w --rollback-on-failure --rollback-after 2 good.yaml", 1, "", "--rollback-after 2"),
    Case("lint --format json bad.yaml", 1, '"code": "unknown_field"'),
    Case("lint --format sarif good.yaml", 0, '"version": "2.1.0"'),
    Case("lint", 1, "", "name a config file"),
    Case("migrate good.yaml", 0, "good.yaml: runs unchanged", coloured=True),
    Case("migrate bad.yaml", 1, "bad.yaml: needs changes", coloured=True),
    Case("test tested.yaml", 0, "1 test: 1 passed", coloured=True),
    Case("test failing.yaml", 1, "1 test: 0 passed, 1 failed", coloured=True),
    Case("test empty.yaml", 1, "No tests were found", coloured=True),
    Case("explain good.yaml", 0, "generate"),
    Case("explain windows.yaml --cost --input nope", 1, "stream windows", "--input nope", True),
    Case("explain past.yaml --cost --sample 1", 1, "", "Invalid value for '--sample'"),
    Case("explain bad.yaml", 1, "", SAID, coloured=True),
    Case("diff good.yaml good.yaml", 0, "nothing changes"),
    Case("diff good.yaml tested.yaml", 2, "--on-reset drain", coloured=True),
    Case("diff --json good.yaml tested.yaml", 2, '"effect": "reset"'),
    Case("diff good.yaml bad.yaml", 1, "", SAID, coloured=True),
    Case("graph good.yaml", 0, "generate", coloured=True),
    Case("graph --format mermaid good.yaml", 0, "flowchart"),
    Case("graph bad.yaml", 1, "", SAID, coloured=True),
    Case("dry-run good.yaml", 0, "input: generate", coloured=True),
    Case("dry-run bad.yaml", 1, "", SAID, coloured=True),
    Case("tap good.yaml", 0, "output: drop", coloured=True),
    Case("tap bad.yaml", 1, "", SAID, coloured=True),
    Case(
        "timeline windows.yaml --input in.json --clock 2026-01-01T00:00:00Z",
        0,
        "window",
        coloured=True,
    ),
    Case("tap --no-metadata good.yaml", 0, "output: drop", coloured=True),
    Case("timeline bad.yaml --input in.json", 1, "", SAID, coloured=True),
    Case("doctor good.yaml -s http.enabled=false", 0, "time zones", coloured=True),
    Case("doctor bad.yaml", 1, "→ did you mean input?", coloured=True),
    Case("why windows.yaml", 1, "", "there is no journal of decisions", coloured=True),
    Case("why empty.yaml", 1, "", "the config has no windows", coloured=True),
    Case("why windows.yaml --stream one", 1, "", "why needs a config or --stream, not both"),
    Case("state list windows.yaml", 1, "", "there is no checkpoint", coloured=True),
    Case("state diff windows.yaml", 1, "", "Missing option '--from'"),
    Case("state start windows.yaml --to .", 1, "", "is not empty", coloured=True),
    Case("state list empty.yaml", 1, "", "has no windows", coloured=True),
    Case("rescale windows.yaml --shards 3", 1, "", "there is no checkpoint", coloured=True),
    Case("rescale windows.yaml --shards 0", 1, "", "Invalid value for '--shards'"),
    Case("rescale bad.yaml --shards 3", 1, "", SAID, coloured=True),
    Case("backfill good.yaml", 1, "", "cannot be read again from its beginning", coloured=True),
    Case("backfill bad.yaml", 1, "", SAID, coloured=True),
    Case("backfill windows.yaml", 1, "", "timestamp_mapping reads now()", coloured=True),
    Case("backfill past.yaml --from soon", 1, "", "--from soon: expected a time", coloured=True),
    Case("backfill past.yaml --estimate --afresh --work w", 0, "", "estimate: 1 messages"),
    Case("kafka-offsets good.yaml --checkpoint .", 1, "", "reads no Kafka topics", coloured=True),
    Case("kafka-offsets good.yaml --apply", 1, "", "--apply needs an option"),
    Case("kafka-offsets bad.yaml", 1, "", SAID, coloured=True),
    Case("submit bad.yaml --master spark://127.0.0.1:9", 1, "", SAID, coloured=True),
    Case("submit good.yaml", 1, "", "expected spark://HOST:7077, yarn", coloured=True),
    Case(
        "submit good.yaml --master spark://127.0.0.1:9", 1, "", "needs a checkpoint", coloured=True
    ),
    Case(
        "submit empty.yaml --master spark://127.0.0.1:9", 1, "", "the input is stdin", coloured=True
    ),
    Case("submit", 1, "", "submit needs a config"),
    Case(
        "submit --master spark://127.0.0.1:9 streams --checkpoints c bad.yaml",
        *(1, "", SAID, True),
    ),
    Case(
        "submit --master spark://127.0.0.1:9 streams good.yaml", 1, "", "needs a checkpoint", True
    ),
    Case("submit streams -w good.yaml", 1, "", "watches files of this machine"),
    Case("submit good.yaml --status a --kill b", 1, "", "do not go together"),
    Case("submit good.yaml --name a/b", 1, "", "expected what a file can be called"),
    Case("warm --directory good.yaml", 1, "", "is a file"),
    Case("pack environment.zip", 1, "", "expected a name that ends in .tar.gz"),
    Case("pack nowhere/a.tar.gz", 1, "", "cannot be written: No such file", coloured=True),
    Case("query kept", 0, '{"n":1}', coloured=True),
    Case("query kept --key nope", 0, "", "no results"),
    Case("query kept --sql 'SELECT count(*) AS n FROM results' --format json", 0, '{"n":1}'),
    Case("query kept --sql 'DROP TABLE results'", 1, "", "expected a SELECT", coloured=True),
    Case("query kept --files", 0, ".parquet"),
    Case("query kept --files --key a", 1, "", "--files takes a config or a checkpoint"),
    Case("query windows.yaml", 1, "", "windows.yaml keeps no results", coloured=True),
    Case("query bad.yaml", 1, "", SAID, coloured=True),
    Case("query kept --from soon", 1, "", "--from is 'soon', expected a time", coloured=True),
    Case("query", 1, "", "query needs a config"),
    Case("blobl 'root = this.a' -i in.json", 0, "x"),
    Case("blobl 'root = nope()' -i in.json", 1, "", "nope", coloured=True),
    Case("create stdin//drop", 0, "input:"),
    Case("create nope", 1, "", "nope", coloured=True),
    Case("echo good.yaml", 0, "generate:"),
    Case("echo bad.yaml", 1, "", SAID, coloured=True),
    Case("template lint good.yaml", 1, "", "good.yaml", coloured=True),
    Case("list inputs", 0, "- stdin"),
    Case("list inputs stdin", 0, "stdin", coloured=True),
    Case("list --format json-full-scrubbed inputs", 0, '"name": "stdin"'),
    Case("list --format cue", 1, "", "cue is not available"),
    Case("list inputs --json", 0, '"name": "stdin"'),
    Case("list inputs nsq", 1, "", "Redpanda Connect's own", coloured=True),
    Case("completion bash", 0, "complete -o nosort"),
    Case("completion csh", 1, "", "is not one of 'bash', 'zsh', 'fish'"),
    Case("list nope", 1, "", "there is no list 'nope'", coloured=True),
    Case("docs", 0, "lint"),
    Case("docs nope", 1, "", "nope", coloured=True),
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with the results of one window."""
    directory = tmp_path_factory.mktemp("kept")
    keep(directory / "results", Row("a", content=b'{"n":1}'))
    return directory


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "kept").symlink_to(kept)
    return tmp_path


def ids(case: Case) -> str:
    return case.arguments


class _Terminal:
    """A pseudo terminal in the place of one standard stream, read while it is written to."""

    def __init__(self) -> None:
        self._ours, theirs = pty.openpty()
        tty.setraw(theirs)
        self.stream = os.fdopen(theirs, "w", encoding="utf-8")
        self._parts: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        try:
            while part := os.read(self._ours, 65536):
                self._parts.append(part)
        except OSError:
            pass  # nobody writes any more

    def text(self) -> str:
        self.stream.close()
        self._reader.join()
        os.close(self._ours)
        return b"".join(self._parts).decode()


def on_terminal(arguments: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    out, err = _Terminal(), _Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out.stream)
        patch.setattr(sys, "stderr", err.stream)
        code = invoke(shlex.split(arguments))
    return code, out.text(), err.text()


def _steady(text: str) -> str:
    """Return a text without what differs from run to run."""
    text = re.sub(r"\d+\.\d+ (ms|GiB)", r"N \1", text)
    text = re.sub(r"\d+-\d+-\d+T[\d:]+Z$", "NOW", text, flags=re.M)
    # Where there is no Java but that of the extra, its launcher has a directory for each process.
    return re.sub(r"(streamer-java-\d+-)\w+", r"\1NAME", text)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_pipe_gets_the_text_and_nothing_else_and_a_terminal_the_same_in_colour(
    case: Case, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = invoke(shlex.split(case.arguments))
    piped = capsys.readouterr()
    found = code, bool(piped.out), bool(piped.err)
    assert found == (case.code, bool(case.out), bool(case.err)), piped
    assert case.out in piped.out
    assert case.err in piped.err
    assert not {"\x1b", "\r", "\b"} & set(piped.out + piped.err)
    code, out, err = on_terminal(case.arguments, monkeypatch)
    assert code == case.code
    assert bool(ESCAPE.search(out + err)) == case.coloured
    assert _steady(ESCAPE.sub("", out)) == _steady(piped.out)
    assert _steady(ESCAPE.sub("", err)) == _steady(piped.err)


@pytest.mark.parametrize("case", [case for case in CASES if case.coloured], ids=ids)
def test_who_wants_no_colours_gets_none(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, err = on_terminal(case.arguments, monkeypatch)
    assert code == case.code
    assert ESCAPE.search(out + err) is None


def _commands() -> list[str]:
    """Return all commands, those of commands included."""
    context = click.Context(cli)
    found = []
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        found.append(name)
        if isinstance(command, click.Group):
            found += [f"{name} {inner}" for inner in command.list_commands(context)]
    return found


COMMANDS = _commands()


def test_every_command_has_its_cases() -> None:
    called = {case.arguments.split()[0] for case in CASES}
    assert {name.split()[0] for name in COMMANDS} <= called


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_says_what_a_command_does(
    name: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([*name.split(), option]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    usage, _, rest = out.partition("\n")
    assert usage.startswith(f"Usage: streamer {name} ")
    assert "  --help" in rest or "-h, --help" in rest
    # A sentence comes before the options, and no line is too long for a terminal.
    assert re.search(r"^  [A-Z].*", rest, re.M)
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_does_not_exist_exits_with_1(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Of a comparison, 1 is the code of a difference.
    assert invoke([*name.split(), "--no-such-option"]) == (2 if name == "compare" else 1)
    out, err = capsys.readouterr()
    assert out == ""
    assert f"Usage: streamer {name} " in err
    assert "--no-such-option" in err


def test_the_program_says_the_purpose_of_every_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["--help"]) == 0
    listed = re.findall(r"^  ([\w-]+) +[A-Z].*\.$", capsys.readouterr().out, re.M)
    assert {name.split()[0] for name in COMMANDS} <= set(listed)
