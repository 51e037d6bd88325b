"""Help: commands by task, the options that matter, and all of them on request."""

from __future__ import annotations

import re

import click
import pytest

from streamer.cli.main import _COMMANDS, _GROUPS, cli, invoke
from streamer.cli.shared_options import MAIN_OPTIONS


def show(arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert invoke(arguments.split()) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_commands_stand_by_task_before_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    out = show("--help", capsys)
    titles = re.findall(r"^([A-Z].*):$", out, re.M)
    assert titles == [*_GROUPS, "Options"]
    assert out.index("Start here:") < out.index(f"{titles[0]}:")
    for title, commands in _GROUPS.items():
        section = out.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^  ([\w-]+) ", section, re.M) == list(commands)


def test_help_shows_what_matters_and_help_all_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    short, whole = show("tap --help", capsys), show("tap --help-all", capsys)
    assert "--set" in short
    assert "--no-metadata" in short
    for option in ("--master", "--impure", "--chilled", "--templates", "--log.level"):
        assert option not in short
        assert option in whole
    assert len(short.splitlines()) < len(whole.splitlines()) - 10


@pytest.mark.parametrize("name", [name for name in MAIN_OPTIONS if name != "cli"])
def test_every_option_is_there_and_the_config_is_in_the_words_of_its_command(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    short, whole = show(f"{name} --help", capsys), show(f"{name} --help-all", capsys)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.opts[-1] in whole
    # An option that only `--help-all` shows is not shown by name in the table of others.
    assert MAIN_OPTIONS[name] <= {str(param.name) for param in command.params}
    for text in (short, whole):
        assert ("stdin goes to stdout" in " ".join(text.split())) == (name == "run")


def test_all_options_work_whether_help_shows_them_or_not() -> None:
    assert set(MAIN_OPTIONS) - {"cli"} <= set(_COMMANDS)
    assert (
        invoke(["explain", "-s", "output={drop: {}}", "--no-impure", "--master", "local[1]"]) == 0
    )
