"""`streamer lint`: check configs, and say what is wrong and where."""

from __future__ import annotations

from typing import Final

import click

from streamer.bloblang import no_impure
from streamer.cli.failures import print_lint
from streamer.cli.options import Options, impure_option
from streamer.cli.paths import expand
from streamer.config import LintOptions, lint_config

_HELP: Final = """\
Check configs and print everything that is wrong with them as FILE(LINE,COLUMN) MESSAGE.

A path is a file, a glob, or a directory, of which all .yaml and .yml files are checked
(DIR/... means the same). Exits with 1 when there is any finding; prints nothing when all is
well.

\b
  streamer lint config.yaml
  streamer lint 'configs/*.yaml' ./other/...
"""


@click.command("lint", help=_HELP)
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--deprecated", is_flag=True, help="Name deprecated fields and components too.")
@click.option("--labels", is_flag=True, help="Name components without a label too.")
@click.option(
    "--skip-env-var-check",
    is_flag=True,
    help="Don't mind environment variables that have no default and are not set.",
)
@impure_option
@click.option("--verbose", is_flag=True, help="Print the result for each file.")
@click.pass_obj
def lint_cli(
    root: Options,
    paths: tuple[str, ...],
    deprecated: bool,
    labels: bool,
    skip_env_var_check: bool,
    impure: bool | None,
    verbose: bool,
) -> int:
    """Check configs and print everything that is wrong with them as FILE(LINE,COLUMN) MESSAGE."""
    targets = [*paths, *([root.config] if root.config else [])]
    if not targets:
        raise click.UsageError("name a config file or a directory to check")
    options = LintOptions(deprecated, labels, check_variables=not skip_env_var_check)
    failed = False
    for file in dict.fromkeys(expand(targets)):
        with no_impure(impure is False or root.impure is False):
            lints = lint_config(file, options=options)
        for lint in lints:
            print_lint(lint)
        if verbose:
            word = click.style("FAILED", fg="red") if lints else click.style("OK", fg="green")
            click.echo(f"{file}: {word}")
        failed = failed or bool(lints)
    return int(failed)
