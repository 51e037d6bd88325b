"""The pages of the documentation as HTML, with links that lead to pages of the console.

Nothing in a page can be more than text, links and pictures: HTML in it is shown as it is typed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamer.tools.docs_index import (
    DocsPlace,
    DocsSection,
    find_docs_place,
    read_docs_index,
    strip_docs_footer,
)
from streamer.tools.docs_search import DocsHit, mark_words, search_docs

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

DOCS_DIRECTORY: Final = Path(__file__).resolve().parents[2] / "docs"
_TITLE: Final = re.compile(r"^# (.*)$", re.M)
_NOT_IN_SLUGS: Final = re.compile(r"[^\w\- ]")
_ABSOLUTE_URL: Final = re.compile(r"[a-z]+:", re.I)
_COMMENT: Final = re.compile(r"<!--.*-->", re.S)
_FENCE_FILE: Final = re.compile(r"=(\S+)$")


class Heading(NamedTuple):
    """A heading of a page.

    Attributes:
        level: from 1.
        text: what it says.
        slug: what links to it end with.
    """

    level: int
    text: str
    slug: str


class Page(NamedTuple):
    """A page.

    Attributes:
        title: its first heading.
        html: all of it. Links to other pages begin with `#/docs/`, ids of headings with `at-`, and
            pictures are named as they are among the console's files (`pictures/graph.svg`).
        headings: those that it has.
    """

    title: str
    html: str
    headings: Sequence[Heading]


class ManualHit(NamedTuple):
    """A section that a search has found.

    Attributes:
        page: the page's name.
        title: the page's.
        section: the group that the page belongs to, such as `Learn windows`.
        heading: the section's; empty at the beginning of the page.
        slug: what a link to the section ends with; empty at the beginning of the page.
        excerpt: text in parts, each with whether it is one of the words.
    """

    page: str
    title: str
    section: str
    heading: str
    slug: str
    excerpt: Sequence[tuple[str, bool]]


class Manual:
    """The pages, by names without slashes: `windows`, `components.inputs.kafka`."""

    def __init__(self, directory: Path = DOCS_DIRECTORY) -> None:
        """Take the directory with the pages' texts."""
        self._directory = directory

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """Titles of pages, by name; first those in no directory."""
        paths = sorted(self._directory.rglob("*.md"), key=lambda path: (len(path.parts), path))
        title_by_page = {}
        for path in paths:
            text = path.read_text(encoding="utf-8")
            title = _TITLE.search(text)
            title_by_page[self._page_name(path)] = title[1].replace("`", "") if title else path.stem
        return title_by_page

    @cached_property
    def sections(self) -> Sequence[DocsSection]:
        """The index: groups of pages, in order. Names of pages in it have slashes."""
        return read_docs_index(self._directory)

    def find_place(self, name: str) -> DocsPlace | None:
        """Return the place of a page in the index; None for the index itself."""
        return find_docs_place(self.sections, name.replace(".", "/"))

    def search(self, text: str, limit: int) -> list[ManualHit]:
        """Return the best sections in which all words of a text occur, one of each page.

        Args:
            text: the words.
            limit: how many sections, at most.
        """
        words = text.split()
        return [self._to_hit(hit, words) for hit in search_docs(self._directory, words)[:limit]]

    def _to_hit(self, hit: DocsHit, words: Sequence[str]) -> ManualHit:
        page = hit.page.replace("/", ".")
        place = self.find_place(page)
        heading = "" if hit.heading == hit.title else hit.heading
        section = place.above.title if place and place.above else place.section if place else ""
        excerpt = mark_words(hit.excerpt, words)
        return ManualHit(page, hit.title, section, heading, _make_slug(heading), excerpt)

    def render_page(self, name: str) -> Page | None:
        """Return a page; None when there is none of that name."""
        if name not in self.titles:
            return None
        path = self._directory / f"{name.replace('.', '/')}.md"
        markdown = _make_markdown()
        tokens = markdown.parse(strip_docs_footer(path.read_text(encoding="utf-8")))
        headings = list(_extract_headings(tokens))
        tokens = _drop_comments(tokens)
        _clear_empty_headers(tokens)
        self._rewrite_links(tokens, path.parent.relative_to(self._directory).as_posix(), name)
        html = markdown.renderer.render(tokens, markdown.options, {})
        return Page(self.titles[name], html, headings)

    def _page_name(self, path: Path) -> str:
        return ".".join(path.relative_to(self._directory).with_suffix("").parts)

    def _rewrite_links(self, tokens: Sequence[Token], directory: str, name: str) -> None:
        """Let links lead to pages of the console; what is not among them is text alone."""
        for token in tokens:
            # The console's policy takes no styles that stand in a page.
            token.attrs.pop("style", None)
            opened: list[Token] = []
            for child in token.children or ():
                if child.type == "image":
                    child.attrs["src"] = _join_path(directory, str(child.attrs["src"]))
                elif child.type == "link_open":
                    self._rewrite_link(child, directory, name)
                    opened.append(child)
                elif child.type == "link_close" and opened.pop().tag == "span":
                    child.tag = "span"

    def _rewrite_link(self, link: Token, directory: str, name: str) -> None:
        target = str(link.attrs.pop("href"))
        if _ABSOLUTE_URL.match(target):
            link.attrs = {"href": target, "rel": "noopener noreferrer", "target": "_blank"}
            return
        path, _, slug = target.partition("#")
        page = name
        if path:
            page = _join_path(directory, path).removesuffix(".md").replace("/", ".")
        if page in self.titles and (not path or path.endswith(".md")):
            link.attrs = {"href": f"#/docs/{page}{f'/{slug}' if slug else ''}"}
        else:
            link.tag = "span"


def _join_path(directory: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(directory, target))


def _make_markdown() -> MarkdownIt:
    # Imported here: who runs no console should not wait for it.
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    markdown.add_render_rule("fence", _render_fence)
    return markdown


def _render_fence(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Show a block of code, with the name of its file where it has one."""
    from markdown_it.common.utils import escapeHtml

    token = tokens[index]
    file = _FENCE_FILE.search(token.info.strip())
    caption = f"<figcaption>{escapeHtml(file[1])}</figcaption>" if file else ""
    return f"<figure>{caption}<pre><code>{escapeHtml(token.content)}</code></pre></figure>\n"


def _clear_empty_headers(tokens: Sequence[Token]) -> None:
    """Give each column a header with words, for readers of the page by a screen reader."""
    for opened, inline, closed in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opened.type == "th_open" and not inline.content:
            opened.tag = closed.tag = "td"


def _drop_comments(tokens: Sequence[Token]) -> list[Token]:
    """Leave out paragraphs that are comments for those who edit a page."""
    comments = {
        number
        for number, token in enumerate(tokens)
        if token.type == "inline" and _COMMENT.fullmatch(token.content)
    }
    return [
        token
        for number, token in enumerate(tokens)
        if not comments & {number - 1, number, number + 1}
    ]


def _make_slug(heading: str) -> str:
    return _NOT_IN_SLUGS.sub("", heading).lower().replace(" ", "-")


def _extract_headings(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Give headings ids, and return them."""
    for token, inline in zip(tokens, tokens[1:], strict=False):
        if token.type == "heading_open":
            text = "".join(child.content for child in inline.children or ())
            slug = _make_slug(text)
            token.attrs["id"] = f"at-{slug}"
            yield Heading(int(token.tag[1:]), text, slug)
