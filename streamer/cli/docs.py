"""`streamer docs`: the documentation on the terminal, and the reference pages as files."""

from __future__ import annotations

import difflib
import os
import re
import sys
from pathlib import Path
from typing import Final

import click

from streamer.cli.log_output import is_terminal
from streamer.components import catalog
from streamer.config.reference_pages import KINDS_BY_PLURAL, format_page, make_pages
from streamer.core.errors import StreamerError
from streamer.tools.docs_index import read_docs_index, strip_docs_footer
from streamer.tools.docs_search import DocsHit, search_docs, suggest_words

_PAGES_DIRECTORY: Final = Path(__file__).resolve().parents[1] / "docs"
_HEADING: Final = re.compile(r"^#+ (.*)$", re.M)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")

_HELP: Final = """\
Show a page of the documentation, search it, or write the reference pages of all components.

Without a name, the pages are listed. The kinds of components: inputs, buffers, processors,
outputs, caches, rate-limits, scanners, metrics, tracers.

\b
  streamer docs windows
  streamer docs cookbook/live_counts
  streamer docs processors mapping
  streamer docs processors
  streamer docs search upsert
  streamer docs search top k
  streamer docs --write ./reference

`search` lists pages, recipes, components, functions and methods in which all words occur, the best
ones first. The exit code is 1 when there is nothing.
"""

_SEARCH: Final = "search"
_MAX_HITS: Final = 12


@click.command("docs", help=_HELP)
@click.argument("names", nargs=-1, metavar="[PAGE | KIND [NAME]… | search WORD…]")
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
        if names:
            raise click.UsageError("--write takes no page: it writes all of them")
        _write_pages(Path(directory))
        return 0
    if names[:1] == (_SEARCH,):
        return _search(names[1:])
    text = _find_text(names) if names else _list_pages()
    styled = _HEADING.sub(lambda heading: click.style(heading[0], bold=True), text)
    if names and is_terminal(sys.stdout):
        # Colours as they are, and no pager for what fits the screen.
        os.environ.setdefault("LESS", "-FRX")
        click.echo_via_pager(styled, color=not os.environ.get("NO_COLOR"))
    else:
        click.echo(styled, nl=False)
    return 0


def _search(words: tuple[str, ...]) -> int:
    """Print what is found; return the exit code."""
    if not words:
        raise click.UsageError("search takes words: streamer docs search upsert")
    hits = search_docs(_PAGES_DIRECTORY, words)
    if not hits:
        instead = " ".join(suggest_words(_PAGES_DIRECTORY, words))
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


def _list_pages() -> str:
    lines = ["Show a page: streamer docs PAGE. Search all: streamer docs search WORD…"]
    for section in read_docs_index(_PAGES_DIRECTORY):
        lines += ["", f"{section.title}:"]
        # The lists of components are no pages here: they follow below.
        pages = [entry for entry in section.entries if "/" not in entry.name]
        lines += [f"  {entry.name:24}{_as_plain_text(entry.summary)}" for entry in pages]
    lines += ["", "Components (streamer docs KIND NAME):"]
    for plural, kind in KINDS_BY_PLURAL.items():
        if catalog.component_names(kind):
            names = click.wrap_text(
                ", ".join(catalog.component_names(kind)), 100, " " * 26, " " * 26
            )
            lines.append(f"  {plural:24}{names.strip()}")
    return "\n".join(lines) + "\n"


def _as_plain_text(markdown: str) -> str:
    return _LINK.sub(r"\1", markdown).replace("`", "")


def _find_text(names: tuple[str, ...]) -> str:
    first, *rest = names
    if first in KINDS_BY_PLURAL:
        return _describe_components(first, rest)
    known = {
        path.relative_to(_PAGES_DIRECTORY).with_suffix("").as_posix(): path
        for pattern in ("*.md", "cookbook/*.md")
        for path in _PAGES_DIRECTORY.glob(pattern)
    }
    stem = first.removesuffix(".md")
    if stem in known and not rest:
        return strip_docs_footer(known[stem].read_text(encoding="utf-8"))
    if stem in known:
        raise StreamerError(f"streamer docs shows one page, found {' '.join(names)!r}")
    homes = [
        plural for plural, kind in KINDS_BY_PLURAL.items() if first in catalog.component_names(kind)
    ]
    if homes and not rest:
        return "\n".join(_describe_components(plural, [first]) for plural in homes)
    components = [
        name for kind in KINDS_BY_PLURAL.values() for name in catalog.component_names(kind)
    ]
    close = difflib.get_close_matches(first, [*known, *KINDS_BY_PLURAL, *components], n=1)
    hint = f"did you mean {close[0]}?" if close else "streamer docs lists the pages"
    raise StreamerError(f"there is no page {first!r}; {hint}")


def _describe_components(plural: str, names: list[str]) -> str:
    kind = KINDS_BY_PLURAL[plural]
    parts = []
    for name in names or catalog.component_names(kind):
        spec = catalog.find_spec(kind, name)
        if spec is None:
            close = difflib.get_close_matches(name, catalog.component_names(kind), n=1)
            known = f"there are {', '.join(catalog.component_names(kind)) or 'none'}"
            hint = f"did you mean {close[0]}?" if close else known
            raise StreamerError(f"there is no {name!r} among {plural}; {hint}")
        parts.append(format_page(spec) if names else f"{name:24}{spec.summary}\n")
    return "\n".join(parts) if names else "".join(parts)


def _write_pages(directory: Path) -> None:
    """Write all pages, and remove pages of components that are no more."""
    written = make_pages()
    try:
        for name, text in written.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for plural in KINDS_BY_PLURAL:
            for path in (directory / plural).glob("*.md"):
                if f"{plural}/{path.name}" not in written:
                    path.unlink()
    except OSError as e:
        raise StreamerError(f"--write {directory}: {(e.strerror or str(e)).lower()}") from None
    click.echo(f"{len(written)} pages written to {directory}")
