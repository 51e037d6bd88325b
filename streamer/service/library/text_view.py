"""Objects that a program prints and a notebook shows: as a text, and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

_CELL_STYLE: Final = "text-align:left;padding:2px 10px"
_TEXT_STYLE: Final = "white-space:pre;font-family:monospace;line-height:1.3"


class TextView:
    """An object whose text is its display on terminals, and in notebooks as HTML.

    `__str__` is the subclass's; neither text nor HTML has secrets.
    """

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the text as HTML, for notebooks."""
        return f'<div style="{_TEXT_STYLE}">{escape(str(self))}</div>'


class TableView(TextView):
    """An object with a title and rows, shown as a table.

    Attributes:
        columns: the titles of the columns.
    """

    columns: Sequence[str] = ()

    def format_title(self) -> str:
        """Return the line above the table."""
        raise NotImplementedError

    def format_rows(self) -> Iterable[Sequence[str]]:
        """Return the cells, row by row."""
        raise NotImplementedError

    def __str__(self) -> str:
        rows = [[_one_line(cell) for cell in row] for row in self.format_rows()]
        if not rows:
            return self.format_title()
        shown = [self.columns, *rows] if any(self.columns) else rows
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        lines = (
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in shown
        )
        return "\n".join([self.format_title(), *lines])

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        return format_html_table(self.format_title(), self.columns, self.format_rows())

    def __rich__(self) -> Any:
        """Return the table as the library `rich` prints it; only that library calls this."""
        from rich.table import Table
        from rich.text import Text

        title = Text(self.format_title())
        table = Table(title=title, title_justify="left", show_header=any(self.columns))
        rows = list(self.format_rows())
        for column in self.columns if rows else ():
            table.add_column(column)
        for row in rows:
            # Not as markup: a key may have brackets.
            table.add_row(*(Text(_one_line(cell)) for cell in row))
        return table


def format_html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML; all texts are escaped."""
    titles = "".join(f'<th style="{_CELL_STYLE}">{escape(one)}</th>' for one in columns)
    head = f"<thead><tr>{titles}</tr></thead>" if any(columns) else ""
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL_STYLE}">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    table = f"<table>{head}<tbody>{body}</tbody></table>" if body else ""
    return f"<div><p><strong>{escape(title)}</strong></p>{table}</div>"


def _one_line(text: str) -> str:
    """Return a text without characters that break a line or move the cursor."""
    return "".join(char if char.isprintable() else "\N{SYMBOL FOR NEWLINE}" for char in text)
