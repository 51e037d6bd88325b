"""SVG that is written by hand: a few shapes, one style, readable on light and on dark ground."""

from __future__ import annotations

import re
from html import escape
from typing import Final, Literal
from unicodedata import east_asian_width

Anchor = Literal["start", "middle", "end"]

_MONO_LETTER_WIDTH: Final = 0.602
_SANS_LETTER_WIDTH: Final = 0.56
_WIDE_LETTER_UNITS: Final = 1.8
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_STYLE: Final = """
svg { --ground: #ffffff; --panel: #f6f8fa; --node: #ffffff; --edge: #d0d7de; --text: #1f2328;
  --muted: #59636e; --blue: #0969da; --violet: #8250df; --green: #1a7f37; --red: #cf222e;
  --amber: #9a6700 }
@media (prefers-color-scheme: dark) {
  svg { --ground: #0d1117; --panel: #161b22; --node: #0d1117; --edge: #3d444d; --text: #e6edf3;
    --muted: #9198a1; --blue: #4493f8; --violet: #ab7df8; --green: #3fb950; --red: #f85149;
    --amber: #d29922 }
}
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
  fill: var(--text) }
.ground { fill: var(--ground) }
.panel { fill: var(--panel); stroke: var(--edge) }
.node { fill: var(--node); stroke: var(--edge) }
.dashed { fill: none; stroke: var(--muted); stroke-dasharray: 4 3 }
.line { stroke: var(--muted); fill: none; stroke-width: 1.3 }
.grid { stroke: var(--edge); fill: none }
.head { font-size: 18px; font-weight: 600 }
.strong { font-weight: 600 }
.small { font-size: 11.5px }
.mono { font: 11.5px ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace }
.muted { fill: var(--muted) }
.blue { fill: var(--blue) } .violet { fill: var(--violet) } .green { fill: var(--green) }
.red { fill: var(--red) } .amber { fill: var(--amber) }
.tint { fill-opacity: .16 }
.faint { stroke-dasharray: 2 4 }
.cross { stroke: var(--red); stroke-width: 1.8; fill: none }
.edge-blue { stroke: var(--blue); fill: none } .edge-green { stroke: var(--green); fill: none }
.edge-red { stroke: var(--red); fill: none } .edge-amber { stroke: var(--amber); fill: none }
"""


class Drawing:
    """A drawing whose size is known when all is drawn; units are pixels."""

    def __init__(self, title: str) -> None:
        """Begin; the title is what a screen reader says."""
        self._title = title
        self._parts: list[str] = []

    def draw_rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        style: str,
        radius: float = 6,
        title: str = "",
    ) -> None:
        """Draw a rectangle with round corners; the title is shown when it is pointed at."""
        self._add_shape(
            f"rect {_format_lengths(x=x, y=y, width=width, height=height, rx=radius)} "
            f'class="{style}"',
            "rect",
            title,
        )

    def draw_text(
        self, x: float, y: float, text: str, style: str = "", anchor: Anchor = "start"
    ) -> None:
        """Write a line of text; `y` is its base line."""
        anchor_attribute = f' text-anchor="{anchor}"' if anchor != "start" else ""
        class_attribute = f' class="{style}"' if style else ""
        self._parts.append(
            f"<text {_format_lengths(x=x, y=y)}{class_attribute}{anchor_attribute}>"
            f"{_escape_text(text)}</text>"
        )

    def draw_line(
        self, x1: float, y1: float, x2: float, y2: float, style: str = "line", arrow: bool = False
    ) -> None:
        """Draw a line, with a head at its end if it is an arrow."""
        head = ' marker-end="url(#arrow)"' if arrow else ""
        self._parts.append(
            f'<line {_format_lengths(x1=x1, y1=y1, x2=x2, y2=y2)} class="{style}"{head}/>'
        )

    def draw_circle(self, x: float, y: float, radius: float, style: str, title: str = "") -> None:
        """Draw a disc; the title is shown when it is pointed at."""
        self._add_shape(
            f'circle {_format_lengths(cx=x, cy=y, r=radius)} class="{style}"',
            "circle",
            title,
        )

    def draw_cross(self, x: float, y: float, size: float, title: str = "") -> None:
        """Draw a cross."""
        left, right, top, bottom = map(_format_number, (x - size, x + size, y - size, y + size))
        way = f"M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"
        self._add_shape(f'path d="{way}" class="cross"', "path", title)

    def _add_shape(self, opening: str, name: str, title: str) -> None:
        end = f"><title>{_escape_text(title)}</title></{name}>" if title else "/>"
        self._parts.append(f"<{opening}{end}")

    def render(self, width: float, height: float) -> str:
        """Return the whole drawing as a text of its own."""
        size = _format_lengths(width=width, height=height)
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
                f'viewBox="0 0 {_format_number(width)} {_format_number(height)}" role="img">',
                f"<title>{_escape_text(self._title)}</title>",
                f"<style>{_STYLE}</style>",
                '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
                'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class="muted"/></marker>'
                "</defs>",
                f'<rect {size} class="ground"/>',
                *self._parts,
                "</svg>\n",
            )
        )


def fit_text(text: str, width: float, size: float = 11.5, mono: bool = True) -> str:
    """Return a text as far as it fits into a width, with an ellipsis where it is cut."""
    max_units = max(width / (size * (_MONO_LETTER_WIDTH if mono else _SANS_LETTER_WIDTH)), 1)
    if _count_units(text) <= max_units:
        return text
    kept = next(n for n in range(len(text) + 1) if _count_units(text[: n + 1]) > max_units - 1)
    return f"{text[:kept]}…"


def measure_width(text: str, size: float = 13, mono: bool = False) -> float:
    """Return about how wide a text is, in pixels."""
    return _count_units(text) * size * (_MONO_LETTER_WIDTH if mono else _SANS_LETTER_WIDTH)


def _count_units(text: str) -> float:
    """Return how many letters a text is as wide as; Chinese, Japanese, … ones are wider."""
    wide = 0 if text.isascii() else sum(east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide * (_WIDE_LETTER_UNITS - 1)


def _format_number(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _format_lengths(**lengths: float) -> str:
    """Return attributes of a shape."""
    return " ".join(f'{name}="{_format_number(length)}"' for name, length in lengths.items())


def _escape_text(text: str) -> str:
    return escape(_CONTROL.sub("\ufffd", text))
