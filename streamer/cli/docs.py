"""`streamer docs`: the documentation on the terminal, and the reference pages as files."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from streamer.cli.completion.values import complete_docs_names
from streamer.cli.log_output import is_terminal
from streamer.cli.paging import print_paged

if TYPE_CHECKING:
    from streamer.tools.docs_search import DocsHit


_HELP: Final = """\
Show a page of the documentation, search it, or write the reference pages of all components.

Without a name, the pages are listed. The kinds of components: inputs, buffers, processors,
outputs, caches, rate-limits, scanners, metrics, tracers.

\b
  streamer docs windows
  streamer docs cookbook/live_counts
  streamer docs processors mapping
  streamer docs processors
  streamer docs bloblang-methods uppercase
  streamer docs search upsert
  streamer docs search top k
  streamer docs --write ./reference

`search` lists pages, recipes, components, functions and methods in which all words occur, the best
ones first. The exit code is 1 when there is nothing.
"""

_SEARCH: Final = "search"
_MAX_COLUMNS: Final = 100
_MAX_HITS: Final = 12


@click.command("docs", help=_HELP)
@click.argument(
    "names",
    nargs=-1,
    metavar="[PAGE | KIND [NAME]… | search WORD…]",
    shell_complete=complete_docs_names,
)
@click.option(
    "--write",
    "directory",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write the reference pages into a directory, and remove those of what is gone.",
)
def docs_cli(names: tuple[str, ...], directory: str | None) -> int:
    """Show or write documentation."""
    if directory is not None:
        from streamer.cli.docs_pages import write_pages

        if names:
            raise click.UsageError("--write takes no page: it writes all of them")
        write_pages(Path(directory))
        return 0
    if names[:1] == (_SEARCH,):
        return _search(names[1:])
    from streamer.cli.docs_pages import find_page_text, list_pages

    if not names:
        print_paged(list_pages())
    elif is_terminal(sys.stdout):
        from streamer.tools.markdown_rendering import render_markdown

        # Long lines are hard to read, however wide the terminal is.
        columns = min(shutil.get_terminal_size().columns, _MAX_COLUMNS)
        print_paged(render_markdown(find_page_text(names), columns, click.style))
    else:
        click.echo(find_page_text(names), nl=False)
    return 0


def _search(words: tuple[str, ...]) -> int:
    """Print what is found; return the exit code."""
    if not words:
        raise click.UsageError("search takes words: streamer docs search upsert")
    from streamer.cli.docs_pages import PAGES_DIRECTORY
    from streamer.tools.docs_search import search_docs, suggest_words

    hits = search_docs(PAGES_DIRECTORY, words)
    if not hits:
        instead = " ".join(suggest_words(PAGES_DIRECTORY, words))
        hint = f"; did you mean {instead}?" if instead else ""
        what = " and ".join(map(repr, words))
        click.echo(f"no section of the documentation has {what}{hint}", err=True)
        return 1
    for hit in hits[:_MAX_HITS]:
        below = "" if hit.heading == hit.title else f" › {hit.heading}"
        command = click.style(f"streamer docs {_page_arguments(hit)}", bold=True)
        click.echo(f"{command}  {hit.title}{below} (line {hit.line})")
        if hit.excerpt:
            click.echo(f"    {hit.excerpt}")
    if len(hits) > _MAX_HITS:
        click.echo(f"… and {len(hits) - _MAX_HITS:,} more pages; add a word")
    return 0


def _page_arguments(hit: DocsHit) -> str:
    """Return what `streamer docs` shows a page by."""
    parts = hit.page.split("/")
    if parts[0] != "components":
        return hit.page
    if len(parts) == 3:
        return " ".join(parts[1:])
    return ""  # the lists of all components
