"""Results to stdout and failures to stderr, in the order of the documents."""

from __future__ import annotations

import os
import sys

import click

from streamer.tools.playground.apply import PrintedResults


class Printer:
    """Prints results as soon as they are there, many with one write.

    Where both streams end in one place (a terminal, `2>&1`), a failure stands where its document's
    result would have stood.
    """

    def __init__(self) -> None:
        self._out = sys.stdout.buffer
        self._is_interleaved = _share_one_target()

    def print(self, printed: PrintedResults) -> None:
        """Print the results and failures of some documents."""
        out, done = printed.out, 0
        if self._is_interleaved:
            for before, text in printed.failures:
                self._write(out[done:before])
                self._fail(text)
                done = before
            self._write(out[done:])
            return
        self._write(out)
        for _, text in printed.failures:
            self._fail(text)

    def _write(self, out: bytes) -> None:
        if out:
            self._out.write(out)
            self._out.flush()

    def _fail(self, text: str) -> None:
        click.echo(click.style(text, fg="red"), err=True)


def _share_one_target() -> bool:
    try:
        out, err = (os.fstat(stream.fileno()) for stream in (sys.stdout, sys.stderr))
    except (OSError, ValueError):
        return False
    return (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
