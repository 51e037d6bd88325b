"""Tables of text on a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import click

from streamer.core.log_format import escape_controls

_FRACTION: Final = re.compile(r"(\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)(?=Z|[+-]\d\d:)")


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under the names of their columns."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for row in (names, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(escape_controls("  ".join(cells).rstrip()))


def shorten_times(text: str) -> str:
    """Return a text whose times (RFC 3339) have milliseconds at most, rounded down."""
    return _FRACTION.sub(lambda match: match[1] + match[2][:4].rstrip("0").rstrip("."), text)
