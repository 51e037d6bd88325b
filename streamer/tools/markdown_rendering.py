"""Markdown as a terminal shows it: headings, lists, tables and code without their marks.

It is the Markdown of our own pages that is rendered: headings with `#`, paragraphs, lists, tables
with pipes, fenced code, quotes, comments.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

Style = Callable[..., str]
"""`click.style`: a text, and keywords such as `bold`."""

_ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*m")
_FENCE: Final = re.compile(r"( *)(```+|~~~+)")
_HEADING: Final = re.compile(r"(#{1,6}) +(.*?)(?: +#+)?$")
_ITEM: Final = re.compile(r"( *)([-*+]|\d+[.)]) +(.*)$")
_TABLE_RULE: Final = re.compile(r" *\|?[ :|-]*-[ :|-]*$")
_COMMENT: Final = re.compile(r"<!--.*?-->\n*", re.S)
_CELL_BREAK: Final = re.compile(r"(?<!\\)\|")
_SPAN: Final = re.compile(
    r"(?P<code>`+)(?P<source> ?.+?)(?P=code)(?!`)"
    r"|!\[(?P<picture>[^\]]*)\]\([^)]*\)"
    r"|\[(?P<link>(?:[^\]`]|`[^`]*`)*)\]\((?P<target>[^)\s]*)[^)]*\)"
    r"|\*\*(?P<bold>(?:[^*]|\*(?!\*))+)\*\*"
    r"|(?<![\w*])\*(?P<italic>[^*\s][^*]*)\*(?!\w)"
)
_CODE: Final[dict[str, Any]] = {"fg": "cyan"}
_MIN_CELL_WIDTH: Final = 12
_CELL_GAP: Final = 2


def render_markdown(text: str, columns: int, style: Style) -> str:
    """Return a page as a terminal shows it.

    Args:
        text: Markdown.
        columns: the terminal's width; code is not wrapped.
        style: gives a text its colour and weight.
    """
    renderer = _Renderer(columns, style)
    blocks = list(renderer.render_blocks(_COMMENT.sub("", text).splitlines()))
    return "\n\n".join(blocks).strip("\n") + "\n"


class _Renderer:
    def __init__(self, columns: int, style: Style) -> None:
        self._columns = columns
        self._style = style

    def render_blocks(self, lines: Sequence[str]) -> Iterator[str]:
        """Return the blocks of a page, between which an empty line stands."""
        n = 0
        while n < len(lines):
            line = lines[n]
            if not line.strip():
                n += 1
            elif fence := _FENCE.match(line):
                end = _find_fence_end(lines, n, fence[2])
                yield self._render_code(lines[n + 1 : end], len(fence[1]))
                n = end + 1
            elif heading := _HEADING.match(line):
                yield self._render_heading(len(heading[1]), heading[2])
                n += 1
            elif n + 1 < len(lines) and "|" in line and _TABLE_RULE.match(lines[n + 1]):
                end = next((m for m in range(n, len(lines)) if "|" not in lines[m]), len(lines))
                yield self._render_table(lines[n:end])
                n = end
            else:
                end = _find_paragraph_end(lines, n)
                yield self._render_paragraph(lines[n:end])
                n = end

    def _render_heading(self, level: int, text: str) -> str:
        plain = self._render_spans(text, plain=True)
        if level == 1:
            return self._style(plain, bold=True) + "\n" + self._style("═" * len(plain), dim=True)
        return self._style(plain, bold=True, underline=level == 2)

    def _render_code(self, lines: Sequence[str], indent: int) -> str:
        removed = (line[indent:] if not line[:indent].strip() else line for line in lines)
        return "\n".join(f"    {self._style(line, **_CODE)}" if line else "" for line in removed)

    def _render_paragraph(self, lines: Sequence[str]) -> str:
        """Return lines of text, of a quote, or of a list."""
        parts: list[tuple[str, str, str]] = []  # first indent, later indent, text
        for line in lines:
            item = _ITEM.match(line)
            if item:
                bullet = item[2] if item[2][0].isdigit() else "•"
                first = f"{item[1]}  {bullet} "
                parts.append((first, " " * len(first), item[3]))
            elif line.startswith(">"):
                bar = self._style("│ ", dim=True)
                quoted = line.lstrip("> ")
                if parts and parts[-1][0] == bar:
                    parts[-1] = (bar, bar, f"{parts[-1][2]} {quoted}")
                else:
                    parts.append((bar, bar, quoted))
            elif parts:
                first, later, text = parts[-1]
                parts[-1] = (first, later, f"{text} {line.strip()}")
            else:
                parts.append(("", "", line.strip()))
        return "\n".join(self._wrap(text, first, later) for first, later, text in parts)

    def _wrap(self, text: str, first: str, later: str) -> str:
        columns = self._columns - _measure(first)
        lines = _wrap_words(self._render_spans(text), columns)
        return "\n".join((later if n else first) + line for n, line in enumerate(lines))

    def _render_table(self, lines: Sequence[str]) -> str:
        head, _, *body = (_split_cells(line) for line in lines)
        rows = [[self._render_spans(cell) for cell in row] for row in (head, *body)]
        count = max(map(len, rows))
        rows = [row + [""] * (count - len(row)) for row in rows]
        widths = self._choose_widths(rows)
        out: list[str] = []
        for number, row in enumerate(rows):
            cells = [_wrap_words(cell, width) for cell, width in zip(row, widths, strict=True)]
            for n in range(max(map(len, cells))):
                parts = [cell[n] if n < len(cell) else "" for cell in cells]
                if number == 0:
                    parts = [self._paint(_ESCAPE.sub("", part), False, bold=True) for part in parts]
                padded = (
                    part + " " * (width - _measure(part))
                    for part, width in zip(parts, widths, strict=True)
                )
                out.append((" " * _CELL_GAP).join(padded).rstrip())
            if number == 0:
                rules = (" " * _CELL_GAP).join("─" * width for width in widths)
                out = [self._style(rules, dim=True)] if not "".join(row) else [*out, rules]
        return "\n".join(out)

    def _choose_widths(self, rows: Sequence[Sequence[str]]) -> list[int]:
        """Return the columns' widths, the widest cut until all fit."""
        widths = [max(1, *map(_measure, column)) for column in zip(*rows, strict=True)]
        columns = self._columns - _CELL_GAP * (len(widths) - 1)
        while sum(widths) > columns and max(widths) > _MIN_CELL_WIDTH:
            widths[widths.index(max(widths))] -= 1
        return widths

    def _render_spans(self, text: str, plain: bool = False) -> str:
        """Return text with its code, links and emphasis; each word has its own escapes."""

        def render(span: re.Match[str]) -> str:
            if span["code"]:
                return self._paint(span["source"].strip(), plain, **_CODE)
            if span["picture"] is not None:
                return self._paint(f"[picture: {span['picture']}]", plain, dim=True)
            if span["target"] is not None:
                return self._render_link(span["link"], span["target"], plain)
            if span["bold"]:
                return self._paint(self._render_spans(span["bold"], True), plain, bold=True)
            return self._paint(self._render_spans(span["italic"], True), plain, italic=True)

        return _SPAN.sub(render, text).replace("\\|", "|")

    def _render_link(self, text: str, target: str, plain: bool) -> str:
        name = self._render_spans(text, True)
        shown = self._paint(name, plain, underline=True)
        where = _describe_target(target)
        if plain or not where or where == name or name.startswith("streamer "):
            return shown
        return f"{shown} {self._paint(f'({where})', plain, dim=True)}"

    def _paint(self, text: str, plain: bool, **options: Any) -> str:
        if plain:
            return text
        return " ".join(self._style(word, **options) if word else "" for word in text.split(" "))


def _describe_target(target: str) -> str:
    """Return where a link leads: an address, or what `streamer docs` takes."""
    if "://" in target:
        return target
    path = target.partition("#")[0]
    if not path.endswith(".md"):
        return ""
    parts = [part for part in path.removesuffix(".md").split("/") if part not in ("..", ".")]
    if "components" in parts:
        parts = parts[parts.index("components") + 1 :]
        return " ".join(parts) if parts != ["README"] else ""
    return "/".join(parts)


def _find_fence_end(lines: Sequence[str], start: int, mark: str) -> int:
    for n in range(start + 1, len(lines)):
        if lines[n].strip() == mark:
            return n
    return len(lines)


def _find_paragraph_end(lines: Sequence[str], start: int) -> int:
    for n in range(start + 1, len(lines)):
        line = lines[n]
        if not line.strip() or _FENCE.match(line) or _HEADING.match(line):
            return n
    return len(lines)


def _split_cells(line: str) -> list[str]:
    # A pipe in code is marked by a backslash, as one in text is.
    cells = _CELL_BREAK.split(line.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip() for cell in cells]


def _measure(text: str) -> int:
    return len(_ESCAPE.sub("", text))


def _wrap_words(text: str, columns: int) -> list[str]:
    """Return a text in lines that fit, as far as its words do."""
    lines: list[str] = []
    width = 0
    for word in text.split():
        size = _measure(word)
        if lines and width + 1 + size <= columns:
            lines[-1] += f" {word}"
            width += 1 + size
        elif size > columns and word == _ESCAPE.sub("", word):
            lines += textwrap.wrap(word, max(columns, 1))
            width = len(lines[-1])
        else:
            lines.append(word)
            width = size
    return lines or [""]
