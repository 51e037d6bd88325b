"""The config that a command was given, read as the command line says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from streamer.bloblang import forbid_impure
from streamer.cli.error_output import print_lint, redact_errors
from streamer.cli.options import Options
from streamer.config import Config, load_config
from streamer.core.errors import Lint


def merge_options(root: Options, options: Options, file: str | None, command: str) -> Options:
    """Return the options of a command that also takes its config as an argument.

    Raises:
        UsageError: the config is named twice.
    """
    merged_options = options.with_defaults(root)
    if file is not None and merged_options.config is not None:
        raise click.UsageError(f"{command} takes one config, found two")
    return Options(config=file).with_defaults(merged_options)


@contextmanager
def open_config(options: Options, report: Callable[[Lint], None] = print_lint) -> Iterator[Config]:
    """Give the config, and keep to `--no-impure` while it is worked with.

    What goes wrong meanwhile is told without the config's secrets.

    Args:
        options: what the command line says.
        report: gets what `--chilled` lets pass.

    Raises:
        ConfigError: there is something wrong with it.
    """
    with forbid_impure(options.impure is False):
        config = load_config(
            options.config,
            sets=options.sets,
            resources=options.resources,
            chilled=options.chilled is True,
        )
        for lint in config.lints:
            report(lint)
        with redact_errors(config.secrets):
            yield config
