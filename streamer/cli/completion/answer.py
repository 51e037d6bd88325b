"""The answer to a shell that completes a command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from streamer.cli.completion.scripts import SCRIPTS, VARIABLE
from streamer.core.log_format import escape_controls

_BASH: Final = "bash"
_NAMED_BY_SHELL: Final = frozenset({"file", "dir"})
"""Types whose values the shell finds itself; the value is what is completed."""


def answer_shell(cli: click.Command, environment: Mapping[str, str]) -> int:
    """Print what a shell asks for; nothing goes to stderr, whatever goes wrong.

    Args:
        cli: the program's command.
        environment: `scripts` says what a shell sets in it.

    Returns:
        The exit code: 1 for a shell that is not known.
    """
    shell, _, request = environment[VARIABLE].partition("_")
    if shell not in SCRIPTS or request not in ("source", "complete"):
        return 1
    if request == "source":
        click.echo(SCRIPTS[shell], nl=False)
        return 0
    for line in format_answer(cli, shell, environment):
        click.echo(line)
    sys.stdout.flush()
    return 0


def format_answer(cli: click.Command, shell: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Return the lines of an answer: type, value and description, divided by tabs."""
    arguments, incomplete = _split_line(
        environment.get("COMP_LINE", ""), environment.get("COMP_COMMAND", "")
    )
    prefix = ""
    if shell == _BASH:
        breaks = environment.get("COMP_WORDBREAKS", "")
        last = max((incomplete.rfind(one) for one in ":=" if one in breaks), default=-1)
        prefix = incomplete[: last + 1]
    for item in _find_items(cli, arguments, incomplete):
        value = str(item.value)
        if item.type not in _NAMED_BY_SHELL:
            value = value.removeprefix(prefix)
        yield "\t".join((item.type, escape_controls(value), escape_controls(item.help or "")))


def _split_line(line: str, command: str) -> tuple[list[str], str]:
    """Return the words behind the program's name, and the one that is to be completed."""
    words = split_arg_string(line)
    # A command line may begin with variables, or with sudo.
    start = next((n for n, word in enumerate(words) if word == command), 0)
    words = words[start + 1 :]
    if not words or (line[-1:].isspace() and line[-2:-1] != "\\"):
        return words, ""
    return words[:-1], words[-1]


def _find_items(
    cli: click.Command, arguments: list[str], incomplete: str
) -> list[CompletionItem[str]]:
    # A config that cannot be read has no completions, and no traceback at somebody's prompt.
    errors, sys.stderr = sys.stderr, open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        completion = ShellComplete(cli, {"obj": arguments}, "streamer", VARIABLE)
        return completion.get_completions(arguments, incomplete)
    except Exception:
        return []
    finally:
        sys.stderr.close()
        sys.stderr = errors
