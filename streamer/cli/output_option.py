"""The option `-o`: writes a command's result to the standard output or into a file."""

from __future__ import annotations

from pathlib import Path

import click

from streamer.core.errors import StreamerError

out_option = click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write to a file instead of the standard output.",
)


def write_output(path: str | None, text: str) -> None:
    """Write a text.

    Args:
        path: the file; the standard output when None.
        text: what to write; colours are left out of files and pipes.

    Raises:
        StreamerError: the file cannot be written.
    """
    if path is None:
        click.echo(text, nl=False)
        return
    try:
        Path(path).write_text(click.unstyle(text), encoding="utf-8")
    except OSError as e:
        raise StreamerError(f"--out {path}: {(e.strerror or str(e)).lower()}") from None
