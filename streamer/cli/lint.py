"""`streamer lint`: check configs, and say what is wrong and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import click

from streamer.cli.completion.values import FILE
from streamer.cli.environment import variable_options
from streamer.cli.error_output import print_lint
from streamer.cli.options import (
    Options,
    gather_options,
    impure_option,
    resources_option,
    templates_option,
)
from streamer.cli.paths import expand_paths
from streamer.cli.shared_options import help_all_option
from streamer.core.errors import Lint, StreamerError

_HELP: Final = """\
Check configs and print everything that is wrong with them as FILE(LINE,COLUMN) MESSAGE [CODE].

A path is a file, a glob, or a directory, of which all .yaml and .yml files are checked
(DIR/... means the same). Exits with 1 when there is any finding; prints nothing when all is
well. The comment `# streamer:ignore CODE` silences a finding of its line or of the next one.

\b
  streamer lint config.yaml
  streamer lint 'configs/*.yaml' ./other/...
  streamer lint --format sarif configs/ > findings.sarif
"""


@dataclass(frozen=True)
class LintCommandOptions:
    """The options of the command itself."""

    form: str
    deprecated: bool
    labels: bool
    skip_env_var_check: bool
    skip_package_check: bool
    verbose: bool
    quiet: bool


@click.command("lint", help=_HELP)
@click.argument("paths", nargs=-1, type=FILE, metavar="[PATH]…")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="text goes to the standard error stream; json and sarif go to the standard output.",
)
@click.option("--deprecated", is_flag=True, help="Name deprecated fields and components too.")
@click.option("--labels", is_flag=True, help="Name components without a label too.")
@click.option(
    "--skip-env-var-check",
    is_flag=True,
    help="Don't mind environment variables that have no default and are not set.",
)
@click.option(
    "--skip-package-check",
    is_flag=True,
    help="Don't mind packages that components need and that are not installed here.",
)
@resources_option
@templates_option
@variable_options
@impure_option
@help_all_option
@click.option("--verbose", is_flag=True, help="Print the result for each file.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; the exit code tells.")
@click.pass_obj
@gather_options(LintCommandOptions)
def lint_cli(
    root: Options,
    own: LintCommandOptions,
    /,
    paths: tuple[str, ...],
    resources: tuple[str, ...],
    impure: bool | None,
) -> int:
    """Check configs and print everything that is wrong with them."""
    from streamer.cli.lint_files import LintJob, lint_files
    from streamer.components.plugins import warn_of_name_problems
    from streamer.config import LintOptions

    form = own.form
    if own.verbose and (own.quiet or form != "text"):
        other = "--quiet" if own.quiet else f"--format {form}"
        raise click.UsageError(f"--verbose does not go with {other}")
    more = tuple(dict.fromkeys([*root.resources, *expand_paths(resources)]))
    files = [*expand_paths([*paths, *([root.config] if root.config else [])]), *more]
    if not files and paths:
        raise StreamerError(f"there is no .yaml or .yml file in {', '.join(paths)}")
    if not files:
        raise click.UsageError("name a config file or a directory to check")
    job = LintJob(
        LintOptions(
            own.deprecated,
            own.labels,
            check_variables=not own.skip_env_var_check,
            packages=not own.skip_package_check,
            thorough=True,
        ),
        more,
        impure is not False and root.impure is not False,
    )
    if not own.quiet:
        warn_of_name_problems()
    results = lint_files(list(dict.fromkeys(files)), job)
    if own.quiet:
        return int(any([lints for _, lints in results]))
    if form == "text":
        return _print_results(results, own.verbose)
    findings = dict(results)
    from streamer.cli import lint_formats

    click.echo(
        lint_formats.to_json(findings) if form == "json" else lint_formats.to_sarif(findings)
    )
    return int(any(findings.values()))


def _print_results(results: Iterable[tuple[str, tuple[Lint, ...]]], verbose: bool) -> int:
    failed = False
    for file, lints in results:
        for lint in lints:
            print_lint(lint, code=True)
        if verbose:
            word = click.style("FAILED", fg="red") if lints else click.style("OK", fg="green")
            click.echo(f"{file}: {word}")
        failed = failed or bool(lints)
    return int(failed)
