"""`streamer test`: run the unit tests of configs, and say what is wrong."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from streamer.cli.completion.values import FILE
from streamer.cli.environment import variable_options
from streamer.cli.log_output import LogConfig, Logger
from streamer.cli.options import LOG_LEVELS, Options, resources_option, templates_option
from streamer.cli.paths import expand_paths
from streamer.cli.shared_options import help_all_option
from streamer.config.unit_tests.definitions import Case, find_definitions
from streamer.core.errors import StreamerError
from streamer.core.locations import is_location
from streamer.tools.unit_tests.failure import Failure, Line
from streamer.tools.unit_tests.junit import format_junit
from streamer.tools.unit_tests.suite import (
    CaseResult,
    Suite,
    SuiteResult,
    find_suites,
    get_case_name,
    run_suite,
)
from streamer.tools.unit_tests.suite_environment import SuiteEnvironment

_HELP: Final = """\
Run the unit tests of configs: those under `tests:` in a config, and those of a file
NAME_streamer_test.yaml or NAME_benthos_test.yaml beside NAME.yaml.

A path is a config, a file of tests, a glob, or a directory, of which all .yaml and .yml files are
looked at (DIR/... means the same). A config may be the URL of an object. Exits with 1 when a test
fails, when a config that is tested has lint findings, and when there are no tests at all.

\b
  streamer test config.yaml
  streamer test ./configs/...
"""

_COLOURS: Final = {"plain": None, "expected": "green", "received": "red"}


@click.command("test", help=_HELP)
@click.argument("paths", nargs=-1, type=FILE, metavar="[PATH]…")
@click.option("-v", "--verbose", is_flag=True, help="Print the name of each test, and how it went.")
@click.option(
    "--log",
    "level",
    type=click.Choice(LOG_LEVELS, case_sensitive=False),
    metavar="LEVEL",
    help="Print what components log, down to this level, to stderr.",
)
@resources_option
@templates_option
@variable_options
@help_all_option
@click.option(
    "--junit", type=click.Path(dir_okay=False), metavar="FILE", help="Write JUnit XML to a file."
)
@click.pass_obj
def test_cli(
    root: Options,
    paths: tuple[str, ...],
    verbose: bool,
    level: str | None,
    resources: tuple[str, ...],
    junit: str | None,
) -> int:
    """Run the unit tests of configs."""
    if root.sets:
        raise click.UsageError("fields cannot be set with --set during unit tests")
    targets = [*paths, *([root.config] if root.config else [])]
    if not targets:
        raise click.UsageError("name a config, a file of tests or a directory")
    suites = find_suites(_check_files_exist(expand_paths(targets)))
    files = (*root.resources, *expand_paths(resources))
    results = [_run_and_print(suite, files, level, verbose) for suite in suites]
    _print_failures([result for result in results if result.failed])
    if results:
        _print_summary(results)
    else:
        click.echo(click.style("No tests were found", fg="yellow"))
    if junit is not None:
        _write_file(junit, format_junit(results))
    return int(not results or any(result.failed for result in results))


def _check_files_exist(paths: Iterable[str]) -> Iterator[str]:
    """Return files; of a config that is missing, the tests may be there.

    Raises:
        StreamerError: there is no such file.
    """
    for path in paths:
        if is_location(path):
            yield path
            continue
        if not os.path.exists(path) and not find_definitions(path):
            kind = "file that matches" if glob.has_magic(path) else "file or directory"
            raise StreamerError(f"there is no {kind} {path!r}; name a config, or a file of tests")
        yield path


def _run_and_print(
    suite: Suite, resources: tuple[str, ...], level: str | None, verbose: bool
) -> SuiteResult:
    log_level = (level or "OFF").upper()
    logger = Logger(LogConfig(level=log_level))

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        logger.emit(level, text, fields, time.time_ns())

    def before(case: Case) -> None:
        if verbose:
            # The name comes first, so that one can see which test does not end, and which logs.
            click.echo(f"  - {get_case_name(case)}:{'' if level is None else chr(10)}", nl=False)

    def after(result: CaseResult) -> None:
        if verbose:
            word = _style_word("failed", "red") if result.failures else _style_word("ok", "green")
            click.echo(f"{' ' if level is None else '    '}{word} ({result.seconds * 1e3:.1f} ms)")

    environment = SuiteEnvironment(suite.config, resources, log, log_level)
    result = run_suite(suite, environment, before, after)
    word = _style_word("failed", "red") if result.failed else _style_word("succeeded", "green")
    click.echo(f"Test '{result.config}' {word}")
    return result


def _style_word(text: str, colour: str) -> str:
    return click.style(text, fg=colour)


def _write_file(path: str, text: bytes) -> None:
    try:
        Path(path).write_bytes(text)
    except OSError as e:
        raise StreamerError(f"--junit {path}: {(e.strerror or str(e)).lower()}") from None


def _print_failures(failed: Sequence[SuiteResult]) -> None:
    if failed:
        click.echo("\nFailures:")
    for result in failed:
        click.echo(f"\n--- {result.config} ---\n")
        for lint in result.lints:
            click.echo(f"Lint: {lint}")
        wrong = [case for case in result.cases if case.failures]
        for number, case in enumerate(wrong):
            if number or result.lints:
                click.echo()
            where = (
                f"line {case.line}" if case.file == result.config else f"{case.file}:{case.line}"
            )
            click.echo(click.style(f"{case.name} [{where}]:", bold=True))
            for failure in case.failures:
                for line in _shorten_failure(failure, result):
                    _print_line(line)


def _shorten_failure(failure: Failure, result: SuiteResult) -> Failure:
    """Print lint's findings once, and not again for each test that cannot be run for them."""
    lint_lines = {f"  {lint}" for lint in result.lints}
    if len(failure) > 1 and lint_lines.issuperset(line.text for line in failure[1:]):
        return (Line(f"{failure[0].text} see the findings above"),)
    return failure


def _print_line(line: Line) -> None:
    click.echo(click.style(line.text, fg=_COLOURS[line.tone]))


def _print_summary(results: Sequence[SuiteResult]) -> None:
    cases = [case for result in results for case in result.cases]
    failed = sum(1 for case in cases if case.failures)
    lints = sum(len(result.lints) for result in results)
    parts = [f"{len(cases) - failed} passed"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{lints} lint finding{'' if lints == 1 else 's'}"] if lints else []
    text = f"\n{len(cases)} test{'' if len(cases) == 1 else 's'}: {', '.join(parts)}"
    click.echo(_style_word(text, "red" if failed or lints else "green"))
