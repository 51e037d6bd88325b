"""The index of the documentation lists every page once, and pages lead on in its order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from streamer.tools.docs_index import (
    DocsEntry,
    DocsPlace,
    find_docs_place,
    format_docs_footer,
    parse_docs_index,
    read_docs_index,
    strip_docs_footer,
)
from tests.docs.navigation import DOCS, ROOT, make_texts

INDEX = """\
# Documentation

## Start

- [Install](install.md): Python and Java
- [Begin](begin.md): a first `stream`

## Reference

- [Cookbook](cookbook.md): recipes
"""


def test_every_page_is_in_the_index_once() -> None:
    sections = read_docs_index(DOCS)
    listed = Counter(entry.name for section in sections for entry in section.entries)
    assert [name for name, count in listed.items() if count > 1] == []
    lists = {"components/README", "components/at-a-glance"}
    assert set(listed) == {path.stem for path in DOCS.glob("*.md")} - {"index"} | lists
    assert [section.title for section in sections] == [
        *("Start", "Learn windows", "Build pipelines", "Run", "Operate", "Reference", "Contribute"),
    ]


def test_every_page_has_a_place() -> None:
    sections = read_docs_index(DOCS)
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    assert [name for name in pages if not find_docs_place(sections, name)] == ["index"]


def test_pages_and_the_readme_follow_the_index() -> None:
    stale = [
        str(path.relative_to(ROOT))
        for path, text in make_texts().items()
        if path.read_text() != text
    ]
    assert stale == [], "run: python -m tests.docs.navigation"


def test_a_page_stands_between_two_others_across_sections() -> None:
    sections = parse_docs_index(INDEX)
    install = DocsEntry("install", "Install", "Python and Java")
    cookbook = DocsEntry("cookbook", "Cookbook", "recipes")
    assert find_docs_place(sections, "begin") == DocsPlace("Start", None, install, cookbook)
    assert find_docs_place(sections, "cookbook/top_k") == DocsPlace("Reference", cookbook)
    assert find_docs_place(sections, "nowhere") is None
    assert find_docs_place(sections, "components/inputs/file") is None


def test_a_footer_is_replaced_and_taken_off(tmp_path: Path) -> None:
    sections = parse_docs_index(INDEX)
    footer = format_docs_footer(sections, "begin")
    links = "← [Install](install.md) · [All pages](index.md) · [Cookbook](cookbook.md) →"
    assert footer == f"\n---\n\n{links}\n"
    assert strip_docs_footer(f"# Begin\n\nText.\n{footer}") == "# Begin\n\nText.\n"
    own = "# Begin\n\nText.\n\n---\n\nMore.\n"
    assert strip_docs_footer(own) == own
    assert format_docs_footer(sections, "install").startswith("\n---\n\n[All pages]")
