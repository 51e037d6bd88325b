"""`streamer echo`: a config as the program understands it."""

from __future__ import annotations

import os
from typing import Any

import click

from streamer.cli.completion.values import complete_config
from streamer.cli.options import Options, merge_options, open_config, parse_options, stream_options


@click.command("echo", short_help="Show a config as it is understood.")
@click.argument("file", required=False, shell_complete=complete_config)
@click.option("--show-env", is_flag=True, help="Show what environment variables hold.")
@stream_options
@click.pass_obj
def echo_cli(root: Options, /, file: str | None, show_env: bool, **given: Any) -> int:
    """Print a config as the program understands it: --set and resources in, defaults filled in.

    Secrets are shown as !!!SECRET_SCRUBBED!!!, and what comes out of environment variables as the
    variables, unless --show-env is given.
    """
    from streamer.config.echo import echo_config

    options = merge_options(root, parse_options(**given), file, "echo")
    with open_config(options) as config:
        click.echo(echo_config(config, os.environ, show_env), nl=False)
    return 0
