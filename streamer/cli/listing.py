"""`streamer list`: the components, functions and methods that there are."""

from __future__ import annotations

import json
from typing import Final

import click

from streamer.cli.completion.values import LISTS, complete_list_words
from streamer.cli.environment import env_file_option
from streamer.cli.options import templates_option
from streamer.cli.paging import print_paged

_CALLS: Final = ("bloblang-functions", "bloblang-methods")
_FORMATS: Final = ("text", "json", "json-full", "json-full-scrubbed", "jsonschema")
_STATUSES: Final = ("stable", "beta", "experimental", "deprecated")

_HELP: Final = f"""\
List what configs and mappings may use.

Name lists to see only these, and names to see only what is called so; a function or method that is
named is shown with its parameters and examples.

The lists: {", ".join(LISTS)}.

\b
  streamer list
  streamer list inputs outputs
  streamer list bloblang-methods uppercase
  streamer list bloblang-functions --format json
"""


def _check_format(ctx: click.Context, param: click.Parameter, form: str) -> str:
    """Return a format that there is."""
    if form == "cue":
        raise click.BadParameter(
            "cue is not available; CUE's own tool makes it of the JSON Schema: streamer list "
            "--format jsonschema > config.json && cue import jsonschema: config.json",
            ctx,
            param,
        )
    return str(click.Choice(_FORMATS).convert(form, param, ctx))


@click.command("list", help=_HELP)
@click.argument("words", nargs=-1, metavar="[LIST]… [NAME]…", shell_complete=complete_list_words)
@click.option(
    "--format",
    "form",
    default="text",
    callback=_check_format,
    metavar="FORMAT",
    show_default=True,
    help=f"One of {', '.join(_FORMATS)}. json has the names of components, and functions and "
    "methods as they are declared; json-full has components and the sections of a config with "
    "all their fields too, json-full-scrubbed the same without descriptions and examples; "
    "jsonschema is the schema of a config.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Name, status and description of each, as JSON."
)
@templates_option
@env_file_option
@click.option("--status", type=click.Choice(_STATUSES), help="Only what has this status.")
def list_cli(words: tuple[str, ...], form: str, as_json: bool, status: str | None) -> int:
    """List what configs and mappings may use."""
    from streamer.cli.component_lists import format_lists, list_entries, to_json_document

    by_list, are_named = list_entries(words, status)
    if form == "jsonschema" and (not words or not any(name in _CALLS for name in by_list)):
        from streamer.config.schema import schema_text

        click.echo(schema_text(), nl=False)
        return 0
    if form == "text" and not as_json:
        print_paged(format_lists(by_list, are_named) + "\n")
        return 0
    output = to_json_document(by_list, "summary" if as_json else form, not words)
    click.echo(json.dumps(output, ensure_ascii=False))
    return 0
