"""`streamer template lint`: check templates, and run their tests."""

from __future__ import annotations

from typing import Final

import click

from streamer.cli.completion.values import FILE
from streamer.cli.environment import env_file_option
from streamer.cli.error_output import print_lint
from streamer.cli.options import templates_option
from streamer.cli.paths import expand_paths
from streamer.config import LintOptions
from streamer.config.templates.file import lint_template
from streamer.core.errors import Lint, StreamerError
from streamer.tools.unit_tests.template_case import check_template

_HELP: Final = """\
Check templates, run the tests that they hold, and print everything that is wrong as
FILE(LINE,COLUMN) MESSAGE.

A path is a file, a glob, or a directory, of which all .yaml and .yml files are checked
(DIR/... means the same). Exits with 1 when there is any finding; prints nothing when all is well.

\b
  streamer template lint ./templates/...
"""


@click.group("template")
def template_cli() -> None:
    """Work with templates: components that a file makes out of others."""


@template_cli.command("lint", help=_HELP)
@click.argument("paths", nargs=-1, required=True, type=FILE, metavar="PATH…")
@templates_option
@env_file_option
@click.option("--verbose", is_flag=True, help="Print the result for each file.")
def lint_cli(paths: tuple[str, ...], verbose: bool) -> int:
    """Check templates, and run their tests."""
    failed = False
    files = list(dict.fromkeys(expand_paths(paths)))
    if not files:
        raise StreamerError(f"there is no .yaml or .yml file in {', '.join(paths)}")
    for file in files:
        lints = _lint_template(file)
        for lint in lints:
            print_lint(lint)
        if verbose:
            word = click.style("FAILED", fg="red") if lints else click.style("OK", fg="green")
            click.echo(f"{file}: {word}")
        failed = failed or bool(lints)
    return int(failed)


def _lint_template(file: str) -> tuple[Lint, ...]:
    template, lints = lint_template(file, LintOptions(thorough=True))
    return lints if template is None else (*lints, *check_template(template))
