"""Notice on a terminal that the program waits for input; without it, it would look dead."""

from __future__ import annotations

import sys

import click

_TEXT = "reading the standard input; Ctrl-D ends it; streamer --help shows what else there is"


def announce_stdin(is_read: bool) -> None:
    """Name the key that ends typed input, on a terminal.

    Args:
        is_read: whether the standard input is what is read.
    """
    is_terminal = getattr(sys.stdin, "isatty", lambda: False)  # a program may lack the stream
    if is_read and is_terminal():
        click.echo(_TEXT, err=True)
