"""`streamer migrate`: what configs of Benthos and Redpanda Connect come to here."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from streamer.cli.completion.values import FILE
from streamer.cli.environment import variable_options
from streamer.cli.options import Options, resources_option, templates_option
from streamer.cli.paths import expand_paths
from streamer.cli.shared_options import help_all_option
from streamer.core.errors import StreamerError
from streamer.core.log_format import escape_controls

if TYPE_CHECKING:
    from streamer.tools.migration.review import Review

_HELP: Final = """\
Review configs of Benthos or Redpanda Connect: what runs, what differs, and what is missing.

A path is a file, a glob, or a directory, of which all .yaml and .yml files are reviewed. Nothing is
connected to, and nothing is written, except copies with --write. Exits with 1 when a config does
not run unchanged.

\b
  streamer migrate config.yaml
  streamer migrate --format json ./configs/...
  streamer migrate --write migrated/ ./configs/...
"""

_WORDS: Final = {
    "runs": ("runs unchanged", "green"),
    "needs_changes": ("needs changes", "yellow"),
    "lacks_components": ("lacks components", "red"),
}
_MAX_PLACES: Final = 5


@click.command("migrate", help=_HELP)
@click.argument("paths", nargs=-1, type=FILE, metavar="PATH…", required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json has a line for each config.",
)
@click.option(
    "--write",
    type=click.Path(file_okay=False),
    metavar="DIRECTORY",
    help="Write a copy of each config there, with Benthos's defaults set and a list of what to do.",
)
@resources_option
@templates_option
@variable_options
@help_all_option
@click.pass_obj
def migrate_cli(
    root: Options,
    /,
    paths: tuple[str, ...],
    form: str,
    write: str | None,
    resources: tuple[str, ...],
) -> int:
    """Review configs, and print what each comes to."""
    from streamer.config.unit_tests.definitions import is_definition
    from streamer.tools.migration.review import Verdict, review_config, to_fields

    more = tuple(dict.fromkeys([*root.resources, *expand_paths(resources)]))
    files = [file for file in dict.fromkeys(expand_paths(paths)) if not is_definition(file)]
    if not files:
        raise StreamerError(f"there is no config in {', '.join(paths)}")
    reviews = [review_config(file, os.environ, more) for file in files]
    if write is not None:
        _write_copies(reviews, Path(write), is_quiet=form == "json")
    if form == "json":
        for review in reviews:
            click.echo(json.dumps(to_fields(review), ensure_ascii=False))
    else:
        _print_reviews(reviews)
    return int(any(review.verdict != Verdict.RUNS for review in reviews))


def _print_reviews(reviews: Sequence[Review]) -> None:
    for review in reviews:
        word, colour = _WORDS[review.verdict]
        tests = f", {_count(review.tests, 'unit test')}" if review.tests else ""
        click.echo(f"{escape_controls(review.file)}: {click.style(word, fg=colour)}{tests}")
        for one in review.missing:
            known = "" if one.is_known else ", which is no name of Benthos's or Connect's"
            hint = f"; {one.replacement}" if one.replacement else ""
            _print_line(f"({one.line},{one.column}) {one.kind} {one.name} is missing{known}{hint}")
        for lint in review.findings:
            hint = f"; {lint.suggestion}" if lint.suggestion else ""
            place = f"{lint.file}({lint.line},{lint.column})"
            if lint.file == review.file:
                place = f"({lint.line},{lint.column})"
            _print_line(f"{place} {lint.message}{hint} [{lint.code}]")
    _print_missing(reviews)
    _print_differences(reviews)
    click.echo(f"\n{_summarize(reviews)}")


def _print_line(text: str) -> None:
    click.echo(f"  {escape_controls(text)}")


def _print_missing(reviews: Sequence[Review]) -> None:
    from streamer.tools.migration.review import count_missing

    counts = count_missing(reviews)
    if not counts or len(reviews) < 2:
        return
    click.echo("\nMissing components, and the number of configs that name them:")
    for (kind, name), count in counts:
        _print_line(f"{count:4}  {kind} {name}")


def _print_differences(reviews: Sequence[Review]) -> None:
    from streamer.tools.migration.review import group_differences

    groups = group_differences(reviews)
    if not groups:
        return
    click.echo("\nDifferent from Benthos:")
    for one, places in groups.items():
        _print_line(one.text)
        if one.change:
            _print_line(f"  {one.change}")
        if len(reviews) > 1 and len(places) == len(reviews):
            _print_line("  In all configs.")
        elif len(reviews) > 1 or one.line:
            rest = f" and {len(places) - _MAX_PLACES} more" if len(places) > _MAX_PLACES else ""
            _print_line(f"  {', '.join(places[:_MAX_PLACES])}{rest}")


def _summarize(reviews: Sequence[Review]) -> str:
    counts = Counter(str(review.verdict) for review in reviews)
    words = {"runs": "unchanged", "needs_changes": "with changes", "lacks_components": "not yet"}
    parts = [f"{counts[name]} {word}" for name, word in words.items() if name in counts]
    tests = sum(review.tests for review in reviews)
    more = f" {_count(tests, 'unit test')}: `streamer test` runs them." if tests else ""
    return f"{_count(len(reviews), 'config')}: {', '.join(parts)}.{more}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _write_copies(reviews: Sequence[Review], directory: Path, is_quiet: bool) -> None:
    """Write copies of configs that can be read, below a directory, with their paths.

    Raises:
        StreamerError: a copy is there already, or cannot be written.
    """
    from streamer.tools.migration.copy import make_copy

    top = os.path.commonpath([os.path.dirname(os.path.abspath(one.file)) for one in reviews])
    for review in reviews:
        if review.config is None:
            continue
        target = directory / os.path.relpath(os.path.abspath(review.file), top)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # What somebody has changed by hand is not written over.
            with target.open("x", encoding="utf-8") as file:
                file.write(make_copy(review))
        except FileExistsError:
            raise StreamerError(f"{target} is there already; name another directory") from None
        except OSError as e:
            raise StreamerError(f"{target}: {(e.strerror or str(e)).lower()}") from None
        if not is_quiet:
            click.echo(f"wrote {escape_controls(str(target))}")
