"""Prints long texts by the pager of a terminal."""

from __future__ import annotations

import os
import sys

import click

from streamer.cli.log_output import is_terminal


def print_paged(text: str) -> None:
    """Print a text: through the pager (PAGER, or less) on a terminal that it does not fit."""
    if not is_terminal(sys.stdout):
        click.echo(text, nl=False)
        return
    # Colours as they are, and no pager for what fits the screen.
    os.environ.setdefault("LESS", "-FRX")
    click.echo_via_pager(text.removesuffix("\n"), color=not os.environ.get("NO_COLOR"))
