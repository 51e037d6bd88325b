"""The config that a command was given, read as the command line says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from streamer.bloblang import no_impure
from streamer.cli.failures import print_lint, without_secrets
from streamer.cli.options import Options
from streamer.config import Config, load_config
from streamer.errors import Lint


def merged(root: Options, options: Options, file: str | None, command: str) -> Options:
    """Return the options of a command that also takes its config as an argument.

    Raises:
        UsageError: the config is named twice.
    """
    together = options.over(root)
    if file is not None and together.config is not None:
        raise click.UsageError(f"{command} takes one config, found two")
    return Options(config=file).over(together)


@contextmanager
def opened(options: Options, tell: Callable[[Lint], None] = print_lint) -> Iterator[Config]:
    """Give the config, and keep to `--no-impure` while it is worked with.

    What goes wrong meanwhile is told without the config's secrets.

    Args:
        options: what the command line says.
        tell: gets what `--chilled` lets pass.

    Raises:
        ConfigError: there is something wrong with it.
    """
    with no_impure(options.impure is False):
        config = load_config(
            options.config,
            sets=options.sets,
            resources=options.resources,
            chilled=options.chilled is True,
        )
        for lint in config.lints:
            tell(lint)
        with without_secrets(config.secrets):
            yield config
