"""`streamer run` and `streamer explain`: read the config, then hand it on."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import click

from streamer.cli.error_output import print_lint
from streamer.cli.options import (
    Options,
    merge_options,
    open_config,
    parse_options,
    running_options,
    stream_options,
)
from streamer.config import Config
from streamer.core.errors import Lint


def _with_config(
    module: str, function: str, options: Options, report: Callable[[Lint], None] = print_lint
) -> int:
    """Read the config first: what is wrong with it shows before anything heavy is imported."""
    with open_config(options, report) as config:
        command: Callable[[Config, Options], int]
        command = getattr(importlib.import_module(module), function)
        return command(config, options)


def run(options: Options) -> int:
    """Run a config to its end; returns the exit code."""
    # What --chilled lets pass stands in the log.
    return _with_config("streamer.cli.run_stream", "run_command", options, lambda _: None)


@click.command("run", short_help="Run a config.")
@click.argument("file", required=False)
@running_options
@click.pass_obj
def run_cli(root: Options, /, file: str | None, **given: Any) -> int:
    """Run a config until its input ends, or until it is stopped (Ctrl-C, SIGTERM).

    A stop finishes the micro-batch in hand and keeps open windows in the checkpoint for the next
    start. With -w, changes of the config's files are taken while it runs.
    """
    return run(merge_options(root, parse_options(**given), file, "run"))


@click.command("explain", short_help="Show how a config would run.")
@click.argument("file", required=False)
@stream_options
@click.pass_obj
def explain_cli(root: Options, /, file: str | None, **given: Any) -> int:
    """Show the plan of a config: its stages, shards and windows, and where processors run.

    Nothing is read or written, and Spark is not started.
    """
    options = merge_options(root, parse_options(**given), file, "explain")
    return _with_config("streamer.cli.explain", "explain_command", options)
