"""`streamer echo`: a config as the program understands it."""

from __future__ import annotations

import os
from typing import Any

import click

from streamer.cli.opened import merged, opened
from streamer.cli.options import Options, options_of, stream_options
from streamer.config.echo import echo


@click.command("echo", short_help="Show a config as it is understood.")
@click.argument("file", required=False)
@click.option("--show-env", is_flag=True, help="Show what environment variables hold.")
@stream_options
@click.pass_obj
def echo_cli(root: Options, /, file: str | None, show_env: bool, **given: Any) -> int:
    """Print a config as the program understands it: --set and resources in, defaults filled in.

    Secrets are shown as !!!SECRET_SCRUBBED!!!, and what comes out of environment variables as the
    variables, unless --show-env is given.
    """
    options = merged(root, options_of(**given), file, "echo")
    with opened(options) as config:
        click.echo(echo(config, os.environ, show_env), nl=False)
    return 0
