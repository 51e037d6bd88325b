"""The config that a command was given, read as the command line says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from streamer.bloblang import no_impure
from streamer.cli.failures import without_secrets
from streamer.cli.options import Options
from streamer.config import Config, load_config


def merged(root: Options, options: Options, file: str | None, command: str) -> Options:
    """Return the options of a command that also takes its config as an argument.

    Raises:
        UsageError: the config is named twice.
    """
    if file is not None and options.config is not None:
        raise click.UsageError(f"{command} takes one config, found two")
    return Options(config=file).over(options.over(root))


@contextmanager
def opened(options: Options) -> Iterator[Config]:
    """Give the config, and keep to `--no-impure` while it is worked with.

    What goes wrong meanwhile is told without the config's secrets.

    Raises:
        ConfigError: there is something wrong with it.
    """
    with no_impure(options.impure is False):
        config = load_config(options.config, sets=options.sets, resources=options.resources)
        with without_secrets(config.secrets):
            yield config
