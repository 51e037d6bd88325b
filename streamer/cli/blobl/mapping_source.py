"""The mapping of the command line: its text, compiled, and its error when it cannot be read."""

from __future__ import annotations

from pathlib import Path

import click

from streamer.bloblang import BloblangError, Mapping, compile_mapping
from streamer.bloblang.carets import format_caret
from streamer.core.errors import StreamerError
from streamer.tools.playground.mapping_environment import find_import_directory


def read_mapping(inline: str | None, file: str | None) -> str | None:
    """Return a mapping's text as it was written; None when there is none.

    Args:
        inline: the text itself, from the command line.
        file: the file that holds it.

    Raises:
        click.UsageError: both were given.
        StreamerError: the file cannot be read.
    """
    if inline is not None and file is not None:
        raise click.UsageError(
            "give either a mapping or --file: unable to execute both a file mapping and an inline "
            "mapping"
        )
    return inline if file is None else read_text(file, "mapping")


def read_text(file: str, what: str) -> str:
    """Return what a file holds.

    Args:
        file: the file's name.
        what: what it is, for the error: `mapping`, `input`.

    Raises:
        StreamerError: it cannot be read.
    """
    try:
        # As it is: a line end that Python would change is a line end of the text.
        return Path(file).read_bytes().decode()
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise StreamerError(f"failed to read {what} file {file}: {reason}") from None
    except UnicodeDecodeError as e:
        raise StreamerError(
            f"failed to read {what} file {file}: expected UTF-8 text, byte {e.start} is not"
        ) from None


def compile_text(text: str, file: str | None = None, impure: bool = True) -> Mapping:
    """Compile a mapping.

    Args:
        text: the mapping, with its variables replaced.
        file: where it is from; what it imports is looked for beside it.
        impure: whether it may read files and environment variables.

    Raises:
        StreamerError: it cannot be read; the text shows the line and the place.
    """
    try:
        return compile_mapping(text, impure=impure, directory=find_import_directory(file))
    except BloblangError as e:
        raise StreamerError(f"failed to parse mapping: {format_caret(e, text)}") from None
