from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamer.cli.main import invoke

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def blobl(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    def run(stdin: str, *arguments: str) -> tuple[int, str, str]:
        fake = SimpleNamespace(buffer=io.BytesIO(stdin.encode()), isatty=lambda: False)
        monkeypatch.setattr("sys.stdin", fake)
        code = invoke(["blobl", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


DOCS = '{"a":1}\n{"a":2}\r\n{"a":3}'


def test_each_line_is_mapped(blobl: Run) -> None:
    assert blobl(DOCS, "root.b = this.a + 1") == (0, '{"b":2}\n{"b":3}\n{"b":4}\n', "")


def test_results_are_printed_as_they_are(blobl: Run) -> None:
    assert blobl('{"a":"x"}\n', "root = this.a") == (0, "x\n", "")
    assert blobl("{}\n", "root = deleted()") == (0, "\n", "")
    assert blobl('{"b":2,"a":1}\n', "let x = 1") == (0, '{"a":1,"b":2}\n', "")
    assert blobl("no json\n", "let x = 1") == (0, "no json\n", "")


def test_pretty_and_raw(blobl: Run) -> None:
    assert blobl('{"a":[1]}\n', "-p", "root = this") == (
        0,
        '{\n  "a": [\n    1\n  ]\n}\n',
        "",
    )
    assert blobl("some text\n", "--raw", "root.x = content().string()") == (
        0,
        '{"x":"some text"}\n',
        "",
    )


def test_a_line_that_fails_is_reported_and_the_next_one_taken(blobl: Run) -> None:
    code, out, err = blobl('nope\n{"a":2}\n', "root = this.a")
    assert (code, out) == (0, "2\n")
    assert err.startswith("failed to execute map: ")


def test_mapping_and_input_from_files(blobl: Run, tmp_path: Path) -> None:
    (tmp_path / "m.blobl").write_text('root."é" = this.a\n', encoding="utf-8")
    (tmp_path / "in.jsonl").write_text(DOCS)
    assert blobl("", "-f", str(tmp_path / "m.blobl"), "-i", str(tmp_path / "in.jsonl")) == (
        0,
        '{"é":1}\n{"é":2}\n{"é":3}\n',
        "",
    )


def test_a_mapping_that_cannot_be_parsed_is_shown(blobl: Run) -> None:
    code, out, err = blobl(DOCS, "root.a = 1\nroot.b = nope()")
    assert (code, out) == (1, "")
    assert err.startswith("error: failed to parse mapping: line 2 char 16: ")
    assert err.endswith("\n  |\n2 | root.b = nope()\n  |          ^^^^\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a mapping, or --file"),
        (["root = 1", "-f", "x"], "give either a mapping or --file"),
        (["-f", "/no/such/file"], "failed to read mapping file /no/such/file"),
        (["root = 1", "-i", "/no/such/file"], "failed to open input file /no/such/file"),
        (["root = ${NOT_SET_ANYWHERE}"], "failed to replace env vars"),
    ],
)
def test_a_wrong_call_exits_with_1(blobl: Run, arguments: list[str], said: str) -> None:
    code, out, err = blobl("", *arguments)
    assert (code, out) == (1, "")
    assert said in err
