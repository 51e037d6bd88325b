"""`streamer run` and `streamer explain`: read the config, then hand it on."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import click

from streamer.cli.failures import print_lint
from streamer.cli.opened import merged, opened
from streamer.cli.options import Options, options_of, running_options, stream_options
from streamer.config import Config
from streamer.errors import Lint


def _with_config(
    module: str, function: str, options: Options, tell: Callable[[Lint], None] = print_lint
) -> int:
    """Read the config first: what is wrong with it shows before anything heavy is imported."""
    with opened(options, tell) as config:
        command: Callable[[Config, Options], int]
        command = getattr(importlib.import_module(module), function)
        return command(config, options)


def run(options: Options) -> int:
    """Run a config to its end; returns the exit code."""
    # What --chilled lets pass stands in the log.
    return _with_config("streamer.cli.run", "run_command", options, lambda _: None)


@click.command("run", short_help="Run a config.")
@click.argument("file", required=False)
@running_options
@click.pass_obj
def run_cli(root: Options, /, file: str | None, **given: Any) -> int:
    """Run a config until its input ends, or until it is stopped (Ctrl-C, SIGTERM).

    A stop finishes the micro-batch in hand and keeps open windows in the checkpoint for the next
    start. With -w, changes of the config's files are taken while it runs.
    """
    return run(merged(root, options_of(**given), file, "run"))


@click.command("explain", short_help="Show how a config would run.")
@click.argument("file", required=False)
@stream_options
@click.pass_obj
def explain_cli(root: Options, /, file: str | None, **given: Any) -> int:
    """Show the plan of a config: its stages, shards and windows, and where processors run.

    Nothing is read or written, and Spark is not started.
    """
    options = merged(root, options_of(**given), file, "explain")
    return _with_config("streamer.cli.explain", "explain_command", options)
