"""`-e/--env-file`: environment variables out of files, for as long as a command runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import click

from streamer.cli.completion.values import FILE
from streamer.cli.paths import expand_globs
from streamer.cli.shared_options import shared_option


@contextmanager
def _set_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the process, those that it has already too, and take them back."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _read_files(files: Iterable[str]) -> dict[str, str]:
    # Imported here: without such a file, nobody should wait for what reads it.
    from streamer.config.dotenv import read_env_file

    return {name: value for file in files for name, value in read_env_file(file).items()}


def _apply_option(ctx: click.Context, _: click.Parameter, given: tuple[str, ...]) -> None:
    if given and not ctx.resilient_parsing:
        ctx.with_resource(_set_variables(_read_files(expand_globs(given))))


env_file_option = shared_option(
    "-e",
    "--env-file",
    multiple=True,
    expose_value=False,
    callback=_apply_option,
    type=FILE,
    metavar="FILE",
    help="A dotenv file (NAME=value lines) whose variables are set, over those that are set "
    "already; may be a glob (in quotes), and may be repeated.",
)
