"""A graph in Mermaid's language, which GitHub and many wikis draw."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from streamer.tools.graph.model import ASIDE_TITLE, Graph, Node

_WIDTH: Final = 60
_SHAPES: Final = {"input": ('(["', '"])'), "output": ('(["', '"])'), "buffer": ('[("', '")]')}


def format_mermaid(graph: Graph) -> str:
    """Return the text of a flow chart: a subgraph for each stage, dotted arrows into branches."""
    return "\n".join(_MermaidWriter().format_lines(graph)) + "\n"


class _MermaidWriter:
    """Gives every node a name, and draws the arrows along the way."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._arrows: list[str] = []
        self._main = ""
        self._aside = ""
        self._buffer = ""

    def format_lines(self, graph: Graph) -> Iterator[str]:
        """Return the lines of the chart."""
        yield "flowchart TD"
        leaves = ""
        for number, stage in enumerate(graph.stages, 1):
            yield f'  subgraph s{number}["{_escape_text(f"{stage.name}: {stage.where}")}"]'
            for node in stage.nodes:
                yield from self._add_step(node, leaves)
                leaves = leaves if node.aside else ""
            leaves = stage.leaves
            yield "  end"
        yield from self._arrows

    def _add_step(self, node: Node, leaves: str) -> Iterator[str]:
        """Add a node to the way, or to what goes aside from the buffer."""
        before = (self._aside or self._buffer) if node.aside else self._main
        name = f"n{next(self._numbers)}"
        if before:
            label = (
                ASIDE_TITLE
                if before == self._buffer and node.aside
                else ""
                if node.aside
                else leaves
            )
            self._add_arrow(before, name, label, dotted=node.aside)
        yield from self._format_node(node, name)
        if node.aside:
            self._aside = name
        else:
            self._main = name
            self._buffer = name if node.kind == "buffer" else self._buffer

    def _format_node(self, node: Node, name: str) -> Iterator[str]:
        opened, closed = _SHAPES.get(node.kind, ('["', '"]'))
        yield f"    {name}{opened}{_format_title(node)}{closed}"
        for branch in node.branches:
            before, title = name, branch.title
            for inner in branch.nodes:
                child = f"n{next(self._numbers)}"
                self._add_arrow(before, child, title, dotted=before == name)
                yield from self._format_node(inner, child)
                before, title = child, ""

    def _add_arrow(self, start: str, end: str, text: str, dotted: bool) -> None:
        label = f'|"{_escape_text(_shorten_text(text))}"|' if text else ""
        self._arrows.append(f"  {start} {'-.->' if dotted else '-->'}{label} {end}")


def _format_title(node: Node) -> str:
    kind = "late_output" if node.aside and node.kind == "output" else node.kind
    name = node.name if node.kind == "processor" else f"{kind}: {node.name}"
    label = f" [{_shorten_text(node.label)}]" if node.label else ""
    detail = f"<br/>{_escape_text(_shorten_text(node.detail))}" if node.detail else ""
    return f"<b>{_escape_text(name)}</b>{_escape_text(label)}{detail}"


def _shorten_text(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _escape_text(text: str) -> str:
    """Return a text for a quoted string: whatever Mermaid would take for itself, as an entity."""
    entities = ("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;")
    text = text.replace("#", "#35;")
    for sign, entity in entities:
        text = text.replace(sign, entity)
    return text
