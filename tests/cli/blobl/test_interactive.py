"""The editor, used through a pseudo terminal as a person would."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from streamer.cli.blobl.interactive import format_result
from streamer.cli.main import invoke
from tests.cli.blobl.terminal import CTRL_C, CTRL_D, CTRL_S, DOWN, END, TAB, Terminal

DOC = '{"name":"Ada","age":36}'


@pytest.mark.slow
def test_the_result_follows_as_one_types(tmp_path: Path) -> None:
    with Terminal(["blobl"], tmp_path) as terminal:
        terminal.wait('"message": "hello world"')
        terminal.type(END + "\nroot.loud = this.message.uppercase()")
        terminal.wait('"loud": "HELLO WORLD"')
        assert terminal.text.index("Mapping") < terminal.text.index("Input")
        line = next(line for line in terminal.text.split("\n") if "Input" in line)
        assert line.index("Input") < line.index("│") < line.index("Result")


def test_an_error_is_told_below_the_mapping_and_underlined(tmp_path: Path) -> None:
    with Terminal(["blobl", "-I", "root = this"], tmp_path) as terminal:
        terminal.wait('"message": "hello world"')
        terminal.type(END + ".message.uppercaze()")
        terminal.wait("unrecognised method 'uppercaze'; did you mean 'uppercase'?")
        assert terminal.underlined() == "uppercaze"
        # What the mapping gave before stays in sight.
        assert '"message": "hello world"' in terminal.text
        terminal.type("\x7f" * 4 + "se()")
        terminal.wait("HELLO WORLD")
        assert "unrecognised" not in terminal.text
        assert terminal.underlined() == ""


@pytest.mark.slow
def test_a_failure_is_told_with_its_line_underlined(tmp_path: Path) -> None:
    mapping = "root = this\nroot.x = this.message.number()"
    with Terminal(["blobl", "-I", mapping], tmp_path) as terminal:
        terminal.wait("failed assignment (line 2)")
        assert terminal.underlined() == "root.x = this.message.number()"


@pytest.mark.slow
def test_the_input_can_be_edited_too(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(f"{DOC}\n{DOC}\n")
    with Terminal(["blobl", "-I", "root = this.age + 1", "-i", "in.jsonl"], tmp_path) as terminal:
        terminal.wait("37")
        terminal.type(TAB + DOWN + DOWN + '{"age":99}')
        terminal.wait("100")
    assert (tmp_path / "in.jsonl").read_text() == f"{DOC}\n{DOC}\n"


@pytest.mark.slow
def test_documents_come_from_a_pipe_and_keys_from_the_terminal(tmp_path: Path) -> None:
    with Terminal(["blobl", "-I"], tmp_path, stdin=DOC.encode()) as terminal:
        terminal.wait('"name": "Ada"')
        terminal.type(END + ".name")
        terminal.wait(lambda: '"name": "Ada"' not in terminal.text and "  Ada" not in terminal.text)
        terminal.type(CTRL_D)
        assert terminal.wait_for_end() == 0


@pytest.mark.slow
@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
def test_one_key_leaves_and_prints_the_mapping(tmp_path: Path, key: str) -> None:
    with Terminal(["blobl", "-I"], tmp_path) as terminal:
        terminal.wait('"message": "hello world"')
        terminal.type(END + ".message")
        terminal.wait(
            lambda: '"message":' in terminal.text and "1 root = this.message" in terminal.text
        )
        terminal.type(key)
        assert terminal.wait_for_end() == 0
        assert terminal.text.strip() == "root = this.message"
        assert terminal.is_as_before()


@pytest.mark.slow
def test_nothing_is_printed_when_nothing_was_edited(tmp_path: Path) -> None:
    with Terminal(["blobl", "-I"], tmp_path) as terminal:
        terminal.wait('"message": "hello world"')
        terminal.type(CTRL_D)
        assert terminal.wait_for_end() == 0
        assert terminal.text.strip() == ""


@pytest.mark.slow
def test_a_signal_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with Terminal(["blobl", "-I"], tmp_path) as terminal:
        terminal.wait('"message": "hello world"')
        assert not terminal.is_as_before()
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.wait_for_end() == 0
        assert terminal.is_as_before()


@pytest.mark.slow
def test_a_mapping_is_saved_to_its_file(tmp_path: Path) -> None:
    with Terminal(["blobl", "-I", "-f", "new.blobl"], tmp_path) as terminal:
        terminal.wait('"message": "hello world"')
        terminal.type(END + "\nroot.x = 1")
        terminal.wait('"x": 1')
        terminal.type(CTRL_S)
        terminal.wait("saved new.blobl")
        assert (tmp_path / "new.blobl").read_text() == "root = this\nroot.x = 1"
        terminal.type(CTRL_D)
        assert terminal.wait_for_end() == 0
        assert terminal.text.strip() == ""


@pytest.mark.slow
def test_a_mapping_that_takes_too_long_does_not_hold_up_the_keys(tmp_path: Path) -> None:
    endless = (
        "root = range(0, 3000).map_each(a -> range(0, 3000).map_each(b -> range(0, 3000).sum()))"
    )
    with Terminal(["blobl", "-I", endless], tmp_path) as terminal:
        terminal.type(END + " # seen")
        terminal.wait("# seen")
        terminal.wait("the mapping was stopped after 2 seconds")
        terminal.type("\x01\x0broot = 7 * 6")
        terminal.wait("42")


def test_without_a_terminal_the_editor_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    assert invoke(["blobl", "-I", "-i", "/dev/null"]) == 1
    assert capfd.readouterr().err.startswith("error: the editor needs a terminal")


@pytest.mark.slow
def test_a_small_terminal_shows_all_panes(tmp_path: Path) -> None:
    with Terminal(["blobl"], tmp_path, columns=40, rows=12) as terminal:
        terminal.wait('"message"')
        for name in ("Mapping", "Input", "Result"):
            assert name in terminal.text


def test_results_are_shown_one_after_another() -> None:
    problem = {"text": "no", "shown": "no", "line": 0, "column": 0, "length": 0}
    shown = format_result(
        {
            "results": [
                {"output": "1", "metadata": '{"a":1}'},
                {"deleted": True},
                {"problem": problem},
            ],
            "cut": True,
        }
    )
    assert shown.split("\n") == [
        "1",
        'metadata {"a":1}',
        "(deleted)",
        "no",
        "(there is more; only the beginning is shown)",
    ]
