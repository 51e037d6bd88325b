"""`streamer completion`: the script that makes a shell complete the program's command lines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from streamer.cli.completion.scripts import SCRIPTS

_HELP: Final = """\
Print a script with which a shell (that of SHELL, when none is named) completes commands, options,
files, and names of components, pages, labels and streams.

\b
  bash   echo 'eval "$(streamer completion bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(streamer completion zsh)"' >> ~/.zshrc
  fish   streamer completion fish > ~/.config/fish/completions/streamer.fish

A new shell completes then. Streams are those of the service at --url (or STREAMER_URL), as far as
it answers within a second.
"""


@click.command("completion", help=_HELP)
@click.argument(
    "shell", type=click.Choice(list(SCRIPTS)), metavar="[bash|zsh|fish]", required=False
)
def completion_cli(shell: str | None) -> int:
    """Print the script of a shell."""
    shell = shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SCRIPTS:
        raise click.UsageError(f"name the shell: {', '.join(SCRIPTS)}")
    click.echo(SCRIPTS[shell], nl=False)
    return 0
