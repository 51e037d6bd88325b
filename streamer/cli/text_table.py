"""Tables of text on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import click

from streamer.core.log_format import escape_controls


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under the names of their columns."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for row in (names, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(escape_controls("  ".join(cells).rstrip()))
