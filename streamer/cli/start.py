"""`streamer run` and `streamer explain`: read the config, then hand it on."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import click

from streamer.bloblang import no_impure
from streamer.cli.failures import without_secrets
from streamer.cli.options import Options, options_of, stream_options
from streamer.config import Config, load_config


def _with_config(module: str, function: str, options: Options) -> int:
    """Read the config first: what is wrong with it shows before anything heavy is imported."""
    with no_impure(options.impure is False):
        config = load_config(options.config, sets=options.sets, resources=options.resources)
        command: Callable[[Config, Options], int]
        command = getattr(importlib.import_module(module), function)
        with without_secrets(config.secrets):
            return command(config, options)


def run(options: Options) -> int:
    """Run a config to its end; returns the exit code."""
    return _with_config("streamer.cli.run", "run_command", options)


@click.command("run", short_help="Run a config.")
@click.argument("file", required=False)
@stream_options
@click.pass_obj
def run_cli(root: Options, /, file: str | None, **given: Any) -> int:
    """Run a config until its input ends, or until it is stopped (Ctrl-C, SIGTERM).

    A stop finishes the micro-batch in hand and keeps open windows in the checkpoint for the next
    start.
    """
    options = options_of(**given).over(root)
    if file is not None and options.config is not None:
        raise click.UsageError("run takes one config, found two")
    return run(Options(config=file).over(options))


@click.command("explain", short_help="Show how a config would run.")
@click.argument("file", required=False)
@stream_options
@click.pass_obj
def explain_cli(root: Options, /, file: str | None, **given: Any) -> int:
    """Show the plan of a config: its stages, shards and windows, and where processors run.

    Nothing is read or written, and Spark is not started.
    """
    options = Options(config=file).over(options_of(**given).over(root))
    return _with_config("streamer.cli.explain", "explain_command", options)
