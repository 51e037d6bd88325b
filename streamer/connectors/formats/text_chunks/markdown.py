"""Markdown cut by its structure: a chunk has its heading, and paragraphs, list items, rows.

The rules are those of LangChain for Go, which Connect uses, odd ones among them: headings count
until the first list item, numbers of a list begin anew behind a nested one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.formats.text_chunks.separators import Length, SeparatorSplitter

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_SEPARATORS: Final = ("\n\n", "\n", " ")
_LISTS: Final = frozenset({"bullet_list", "ordered_list"})
_MAX_DEPTH: Final = 20

_MARKS: Final = {
    "softbreak": ("\n", ""),
    "hardbreak": ("\\\n", ""),
    "strong": ("**", "**"),
    "em": ("*", "*"),
    "s": ("~~", "~~"),
}


class MarkdownSplitter:
    """Cuts a text in Markdown."""

    def __init__(
        self,
        size: int,
        overlap: int,
        length: Length,
        *,
        code_blocks: bool = False,
        reference_links: bool = False,
    ) -> None:
        """Take the settings.

        Args:
            size: of a chunk, without its heading.
            overlap: by how much a chunk may be longer; one that is longer still is cut, with so
                much of each piece at the beginning of the next.
            length: measures a text.
            code_blocks: whether blocks of code are kept.
            reference_links: whether links have their URLs in place, and not a reference.
        """
        self.size = size
        self.overlap = overlap
        self.length = length
        self.code_blocks = code_blocks
        self.reference_links = reference_links
        self.pieces = SeparatorSplitter(size, overlap, _SEPARATORS, length)

    def split(self, text: str) -> list[str]:
        """Return the chunks of a text."""
        from markdown_it.tree import SyntaxTreeNode

        tree = SyntaxTreeNode(_make_parser().parse(text))
        walk = _Walk(self, code_blocks=self.code_blocks, inline_as_written=not self.reference_links)
        return walk.collect(tree.children)


class _Walk:
    """A walk through blocks of one level."""

    def __init__(
        self, settings: MarkdownSplitter, *, code_blocks: bool, inline_as_written: bool
    ) -> None:
        self._settings = settings
        self._code_blocks = code_blocks
        self._inline_as_written = inline_as_written
        self._title = ""
        self._title_is_used = False
        self._list = ""
        self._number = 0
        self._depth = 0
        self._current = ""
        self._chunks: list[str] = []

    def collect(self, blocks: Iterable[SyntaxTreeNode]) -> list[str]:
        """Return the chunks of blocks."""
        for block in blocks:
            self._take(block)
        self._flush()
        return self._chunks

    def _below(self) -> _Walk:
        """Return a walk through blocks within a block, where code is not kept."""
        walk = _Walk(self._settings, code_blocks=False, inline_as_written=False)
        walk._title, walk._title_is_used = self._title, self._title_is_used
        walk._list, walk._number, walk._depth = self._list, self._number, self._depth
        return walk

    def _take(self, block: SyntaxTreeNode) -> None:
        kind = block.type
        if kind == "heading":
            self._flush()
            self._title = f"{'#' * int(block.tag[1:])} {block.children[0].content}"
            self._title_is_used = False
        elif kind == "paragraph":
            self._add(self._inline_text(block.children[0]))
        elif kind == "table":
            self._take_table(block)
        elif kind == "blockquote":
            below = self._below()
            below._title = ""
            for chunk in below.collect(block.children):
                self._add(_indent(chunk, "> "))
            self._flush()
        elif kind in _LISTS:
            self._take_list(block)
        elif kind == "list_item":
            for part in _item_parts(block):
                self._take_item_part(part)
            self._flush()
        elif kind == "hr":
            self._add("\n---")
        elif self._code_blocks and kind == "code_block":
            self._add("\n" + _indent(block.content, "    "))
        elif self._code_blocks and kind == "fence":
            self._add(f"\n```{block.info}\n{block.content}```\n")

    def _take_list(self, block: SyntaxTreeNode) -> None:
        self._list = block.type
        if block.type == "ordered_list":
            self._number = 0
        self._depth += 1
        for chunk in self._below().collect(block.children):
            self._add(_indent(chunk, "  ") if self._depth > 1 else chunk)
        self._depth -= 1

    def _take_item_part(self, part: SyntaxTreeNode) -> None:
        if part.type in _LISTS:
            self._take_list(part)
            return
        line = self._inline_text(part.children[0])
        if self._list == "ordered_list":
            self._number += 1
            line = f"{self._number}. {line}"
        elif self._list:
            line = f"- {line}"
        self._add(line)
        self._title = ""

    def _take_table(self, block: SyntaxTreeNode) -> None:
        rows = [
            [cell.children[0].content if cell.children else "" for cell in row.children]
            for part in block.children
            for row in part.children
        ]
        header, body = rows[0], rows[1:]
        if not any(header) and body:
            header, body = body[0], body[1:]
        head = f"{_row(header)}\n{_row(['---'] * len(header))}"
        for row in body:
            line = _row(row)
            length, size = self._settings.length, self._settings.size
            if not self._current or length(self._current + line) >= size:
                line = f"{head}\n{line}"
            self._add(line)
            self._flush()
        if not body:
            self._add(head)
            self._flush()

    def _add(self, text: str) -> None:
        """Add a text to the chunk at hand, or begin a new one where it would be too long."""
        if not self._current:
            self._current = text
        elif self._settings.length(self._current + text) >= self._settings.size:
            self._flush()
            self._current = text
        else:
            self._current = f"{self._current}\n{text}"

    def _flush(self) -> None:
        """End the chunk at hand."""
        settings, text, self._current = self._settings, self._current, ""
        pieces = [text] if text else []
        if text and settings.length(text) > settings.size + settings.overlap:
            pieces = settings.pieces.split(text)
        if not pieces and self._title and not self._title_is_used:
            self._chunks.append(self._title)
            self._title_is_used = True
            return
        for piece in filter(None, pieces):
            self._title_is_used = True
            has_title = not self._title or self._title in text
            self._chunks.append(piece if has_title else f"{self._title}\n{piece}")

    def _inline_text(self, inline: SyntaxTreeNode) -> str:
        if self._inline_as_written or not inline.children:
            return inline.content
        return "".join(_format_inline(inline.children))


def _item_parts(block: SyntaxTreeNode) -> Iterator[SyntaxTreeNode]:
    """Give the paragraphs and lists of a list item, also those in quotes in it."""
    for child in block.children:
        if child.type == "paragraph" or child.type in _LISTS:
            yield child
        else:
            yield from _item_parts(child)


def _format_inline(nodes: Iterable[SyntaxTreeNode]) -> Iterator[str]:
    for node in nodes:
        if node.type == "code_inline":
            yield f"`{node.content}`"
        elif node.type == "link":
            yield f"[{''.join(_format_inline(node.children))}]{_target(node, 'href')}"
        elif node.type == "image":
            label = "".join(part.content for part in node.children if part.type == "text")
            yield f"![{label}]{_target(node, 'src')}"
        elif node.type in _MARKS:
            before, after = _MARKS[node.type]
            yield f"{before}{''.join(_format_inline(node.children))}{after}"
        else:
            yield node.content


def _target(node: SyntaxTreeNode, name: str) -> str:
    url, title = node.attrs.get(name, ""), node.attrs.get("title", "")
    return f'({url} "{title}")' if url and title else f"({url})"


def _row(cells: list[str]) -> str:
    return f"{''.join(f'| {cell} ' for cell in cells)}|" if cells else ""


def _indent(text: str, mark: str) -> str:
    return "\n".join(f"{mark}{line}" for line in text.split("\n"))


@cache
def _make_parser() -> Any:
    from markdown_it import MarkdownIt

    settings = {"html": False, "typographer": True, "maxNesting": _MAX_DEPTH}
    return MarkdownIt("js-default", settings).enable(["replacements", "smartquotes"])
