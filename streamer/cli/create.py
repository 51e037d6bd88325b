"""`streamer create`: a new config, with defaults and a word about each field."""

from __future__ import annotations

from typing import Final

import click

from streamer.cli.completion.values import complete_created
from streamer.cli.environment import env_file_option
from streamer.cli.options import templates_option

_HELP: Final = """\
Print a new config with the defaults of the components that it is to have.

EXPRESSION names inputs, a buffer, processors and outputs, divided by slashes. The buffer may be
left out, several of the others are divided by commas, and each part may be empty. What it prints
has no lint findings: where a field is required, an example stands in its place.

\b
  streamer create kafka_franz/tumbling_window/mapping/stdout > config.yaml
  streamer create stdin/mapping,log/stdout
  streamer create --small generate,generate/window_join//file
"""


@click.command("create", help=_HELP)
@click.argument("expression", default="", shell_complete=complete_created)
@templates_option
@env_file_option
@click.option(
    "-s",
    "--small",
    is_flag=True,
    help="Only input, buffer, pipeline and output, without the fields that are rarely needed.",
)
def create_cli(expression: str, small: bool) -> int:
    """Print a new config."""
    from streamer.config.create import create_config

    click.echo(create_config(expression, small), nl=False)
    return 0
