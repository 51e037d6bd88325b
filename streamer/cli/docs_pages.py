"""Texts of the documentation: the list of pages, a page, and the pages of components."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from streamer.bloblang.reference import (
    DeclarationKind,
    describe_declarations,
    format_declarations,
    format_package_declarations,
)
from streamer.components import catalog
from streamer.components.plugins import describe_plugin_problem
from streamer.config.reference_pages import KINDS_BY_PLURAL, format_page, make_pages
from streamer.core.errors import StreamerError
from streamer.sdk.spec import Kind
from streamer.tools.docs_index import read_docs_index, strip_docs_footer

PAGES_DIRECTORY: Final = Path(__file__).resolve().parents[1] / "docs"
_CALLS_BY_PAGE: Final[Mapping[str, DeclarationKind]] = {
    "bloblang-functions": "function",
    "bloblang-methods": "method",
}
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def list_pages() -> str:
    """Return the list of pages, in sections, and of components."""
    lines = ["Show a page: streamer docs PAGE. Search all: streamer docs search WORD…"]
    for section in read_docs_index(PAGES_DIRECTORY):
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


def find_page_text(names: tuple[str, ...]) -> str:
    """Return the Markdown of a page.

    Args:
        names: a page, a component, or a kind of components and names in it.

    Raises:
        StreamerError: there is no such page; the text has the nearest name.
    """
    first, *rest = names
    if first in KINDS_BY_PLURAL:
        return _describe_components(first, rest)
    known = {
        path.relative_to(PAGES_DIRECTORY).with_suffix("").as_posix(): path
        for pattern in ("*.md", "cookbook/*.md")
        for path in PAGES_DIRECTORY.glob(pattern)
    }
    stem = first.removesuffix(".md")
    if stem in _CALLS_BY_PAGE and rest:
        return _describe_calls(stem, rest)
    if stem in known and not rest:
        text = strip_docs_footer(known[stem].read_text(encoding="utf-8"))
        if stem in _CALLS_BY_PAGE:
            text += format_package_declarations(_CALLS_BY_PAGE[stem])
        return text
    if stem in known:
        raise StreamerError(f"streamer docs shows one page, found {' '.join(names)!r}")
    homes = [
        plural for plural, kind in KINDS_BY_PLURAL.items() if first in catalog.component_names(kind)
    ]
    if homes and not rest:
        return "\n".join(_describe_components(plural, [first]) for plural in homes)
    if not rest:
        calls = [format_declarations(kind, [first]) for kind in _CALLS_BY_PAGE.values()]
        if any(calls):
            return "\n".join(filter(None, calls))
    components = [
        name for kind in KINDS_BY_PLURAL.values() for name in catalog.component_names(kind)
    ]
    close = difflib.get_close_matches(first, [*known, *KINDS_BY_PLURAL, *components], n=1)
    hint = f"did you mean {close[0]}?" if close else "streamer docs lists the pages"
    raise StreamerError(f"there is no page {first!r}; {hint}")


def _describe_calls(page: str, names: list[str]) -> str:
    """Return the entries of functions or methods of mappings."""
    kind = _CALLS_BY_PAGE[page]
    for name in names:
        if not format_declarations(kind, [name]):
            known = [str(one["name"]) for one in describe_declarations(kind)]
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"streamer list {page} has all"
            raise StreamerError(f"there is no {name!r} among {page}; {hint}")
    return "\n".join(format_declarations(kind, [name]) for name in names)


def _describe_components(plural: str, names: list[str]) -> str:
    kind = KINDS_BY_PLURAL[plural]
    if not names:
        specs = catalog.kind_specs(kind)
        return "".join(f"{spec.name:24}{spec.summary}\n" for spec in specs)
    parts = []
    for name in names:
        spec = catalog.find_spec(kind, name)
        if spec is None:
            raise StreamerError(_explain_no_page(plural, kind, name))
        parts.append(format_page(spec))
    return "\n".join(parts)


def _explain_no_page(plural: str, kind: Kind, name: str) -> str:
    """Return the error text for a component that has no page."""
    if problem := describe_plugin_problem(kind, name):
        return problem
    close = difflib.get_close_matches(name, catalog.component_names(kind), n=1)
    known = f"there are {', '.join(catalog.component_names(kind)) or 'none'}"
    hint = f"did you mean {close[0]}?" if close else known
    return f"there is no {name!r} among {plural}; {hint}"


def write_pages(directory: Path) -> None:
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
