"""The order of the documentation: sections and pages, as `index.md` lists them.

The index is the one list. The command line, the console, the groups of the README and the links
from page to page all follow it. A page that it does not list is a recipe or a component, and
belongs to the list that leads to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

INDEX_PAGE: Final = "index"
_SECTION: Final = re.compile(r"## (.+)")
_ENTRY: Final = re.compile(r"- \[([^\]]+)\]\(([^)]+)\.md\): (.+)")
_FOOTER: Final = re.compile(r"\n+---\n\n[^\n]*\[All pages\]\(index\.md\)[^\n]*\n\Z")
_LISTS_BY_DIRECTORY: Final = {"components": "components/README", "cookbook": "cookbook"}


class DocsEntry(NamedTuple):
    """A page as the index lists it.

    Attributes:
        name: its path below the directory, without `.md`: `components/README`.
        title: what links to it say.
        summary: the problem that it solves, in one line of Markdown.
    """

    name: str
    title: str
    summary: str


class DocsSection(NamedTuple):
    """A group of pages.

    Attributes:
        title: its heading.
        entries: its pages, in order.
    """

    title: str
    entries: Sequence[DocsEntry]


class DocsPlace(NamedTuple):
    """The place of a page among the others.

    Attributes:
        section: the title of its section; that of its list for a recipe or a component.
        above: the list that it belongs to, or None for a page of the index.
        previous: the page before it, if there is one.
        following: the page after it, if there is one.
    """

    section: str
    above: DocsEntry | None = None
    previous: DocsEntry | None = None
    following: DocsEntry | None = None


def read_docs_index(directory: Path) -> list[DocsSection]:
    """Return the sections of the index in a directory of pages, in order."""
    return parse_docs_index((directory / f"{INDEX_PAGE}.md").read_text(encoding="utf-8"))


def parse_docs_index(text: str) -> list[DocsSection]:
    """Return the sections of an index, in order.

    Args:
        text: Markdown: a heading of the second level for each section, and below it a line
            `- [title](page.md): summary` for each page.
    """
    sections: list[tuple[str, list[DocsEntry]]] = []
    for line in text.splitlines():
        if heading := _SECTION.fullmatch(line):
            sections.append((heading[1], []))
        elif (entry := _ENTRY.fullmatch(line)) and sections:
            sections[-1][1].append(DocsEntry(entry[2], entry[1], entry[3]))
    return [DocsSection(title, entries) for title, entries in sections]


def find_docs_place(sections: Sequence[DocsSection], name: str) -> DocsPlace | None:
    """Return where a page stands; None for one that no list leads to.

    Args:
        sections: those of the index.
        name: the page's path below the directory, without `.md`.
    """
    in_order = [(section.title, entry) for section in sections for entry in section.entries]
    for number, (title, entry) in enumerate(in_order):
        if entry.name == name:
            previous = in_order[number - 1][1] if number else None
            following = in_order[number + 1][1] if number + 1 < len(in_order) else None
            return DocsPlace(title, None, previous, following)
    listed_by = _LISTS_BY_DIRECTORY.get(name.partition("/")[0]) if "/" in name else None
    for title, entry in in_order:
        if entry.name == listed_by:
            return DocsPlace(title, entry)
    return None


def format_docs_footer(sections: Sequence[DocsSection], name: str) -> str:
    """Return the Markdown that ends a page: links to the page before, the index, the page after."""
    place = find_docs_place(sections, name)
    if place is None or place.above is not None:
        return ""
    links = [
        f"← [{place.previous.title}]({place.previous.name}.md)" if place.previous else "",
        f"[All pages]({INDEX_PAGE}.md)",
        f"[{place.following.title}]({place.following.name}.md) →" if place.following else "",
    ]
    return f"\n---\n\n{' · '.join(filter(None, links))}\n"


def strip_docs_footer(text: str) -> str:
    """Return a page's Markdown without the links at its end."""
    return _FOOTER.sub("\n", text)


def format_docs_groups(sections: Sequence[DocsSection], directory: str) -> str:
    """Return a Markdown table of the sections, with links to the pages.

    Pages that continue another one, whose titles have a colon, are left out.

    Args:
        sections: those of the index.
        directory: where the pages are, as links name it: `streamer/docs/`.
    """
    rows = [
        f"| **{section.title}** | "
        + " · ".join(
            f"[{entry.title}]({directory}{entry.name}.md)"
            for entry in section.entries
            if ": " not in entry.title
        )
        + " |"
        for section in sections
    ]
    return "\n".join(["| | |", "|---|---|", *rows]) + "\n"
