"""`streamer create`: a new config with defaults and explanations, or a package for a component."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from streamer.cli.completion.values import DIRECTORY, complete_created
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

With --component, EXPRESSION is the name of a new component: a small Python package for it is
written, with an entry point, tests that pass, and a README. `streamer docs plugins` says more.

\b
  streamer create --component processor my_name
"""

_PACKAGE_KINDS: Final = (
    *("input", "processor", "output", "cache", "rate_limit", "metrics", "tracer"),
)


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
@click.option(
    "--component",
    "kind",
    type=click.Choice(_PACKAGE_KINDS),
    help="Write a package with a new component of this kind, in place of a config.",
)
@click.option(
    "--directory",
    type=DIRECTORY,
    help="With --component, the directory of the package; streamer-NAME when it is left out.",
)
def create_cli(expression: str, small: bool, kind: str | None, directory: str | None) -> int:
    """Print a new config, or write a package."""
    if kind is not None:
        if small:
            raise click.UsageError("--small is for configs, and does not go with --component")
        _create_package(kind, expression, directory)
        return 0
    if directory is not None:
        raise click.UsageError("--directory goes with --component only")
    from streamer.config.create import create_config

    click.echo(create_config(expression, small), nl=False)
    return 0


def _create_package(kind: str, name: str, directory: str | None) -> None:
    """Write a package with a component, and print the files and the next steps."""
    from streamer.sdk.spec import Kind
    from streamer.tools.component_kit.new_package import write_package

    if not name:
        raise click.UsageError(f"name the component: streamer create --component {kind} my_name")
    place = Path(directory or f"streamer-{name.replace('_', '-')}")
    for path in write_package(place, Kind(kind), name):
        click.echo(str(path))
    click.echo(f"next: cd {place}; pip install -e '.[test]'; pytest; streamer lint config.yaml")
