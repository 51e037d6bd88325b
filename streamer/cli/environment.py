"""`-e/--env-file` and `--secrets`: values of placeholders, for as long as a command runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from streamer.cli.completion.values import FILE
from streamer.cli.paths import expand_globs
from streamer.cli.shared_options import shared_option

F = TypeVar("F", bound=Callable[..., Any])


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


def _install_secrets(ctx: click.Context, _: click.Parameter, given: tuple[str, ...]) -> None:
    if given and not ctx.resilient_parsing:
        # Imported here, as above.
        from streamer.connectors.secrets.lookup import install_lookup

        ctx.with_resource(install_lookup(given))


_secrets_option = shared_option(
    "--secrets",
    multiple=True,
    expose_value=False,
    callback=_install_secrets,
    metavar="URN",
    help="Where names such as ${secrets.db.password} are looked up: vault://HOST/MOUNT, "
    "aws-secretsmanager://REGION, redis://HOST:PORT, env: (the environment, the default), none:. "
    "May be repeated: the first that has the name gives the value.",
)


def variable_options(command: F) -> F:
    """Add the options that say what the placeholders of configs stand for."""
    return env_file_option(_secrets_option(command))
