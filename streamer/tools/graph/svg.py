"""A graph as an SVG drawing: a panel for each stage, one below the other."""

from __future__ import annotations

from typing import Final

from streamer.tools.drawing import Drawing, fit_text, measure_width
from streamer.tools.graph.model import ASIDE_TITLE, Branch, Graph, Node, Stage

WIDTH: Final = 680
_MARGIN: Final = 20
_PAD: Final = 14
_HEAD: Final = 34
_NODE: Final = 42
_BARE: Final = 28
_GAP: Final = 16
_BETWEEN: Final = 46
_TITLE: Final = 20
_BOLD: Final = 14.5
"""The size of a text in 13 pixels that is as wide as a bold one."""
_COLOURS: Final = {"stage 1": "blue", "stage 2": "violet", "driver": "green"}


def draw_graph(graph: Graph) -> str:
    """Return the drawing as a text of its own."""
    return _GraphRenderer(graph).render()


def _measure_node(node: Node) -> float:
    """Return the height of a node's box, with what is inside of it."""
    height = float(_NODE if node.detail else _BARE)
    for branch in node.branches:
        height += _measure_branch(branch) + _GAP / 2
    return height + (_PAD / 2 if node.branches else 0)


def _measure_branch(branch: Branch) -> float:
    inner = sum(map(_measure_node, branch.nodes)) + _GAP * max(len(branch.nodes) - 1, 0)
    return inner + (_TITLE if branch.title else 0)


def _measure_stage(stage: Stage) -> float:
    heights = sum(map(_measure_node, stage.nodes)) + _GAP * (len(stage.nodes) - 1)
    aside = _TITLE if any(node.aside for node in stage.nodes) else 0
    return _HEAD + heights + aside + _PAD


class _GraphRenderer:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._drawing = Drawing(f"The stages of the stream {graph.name}")

    def render(self) -> str:
        drawing, y = self._drawing, float(_MARGIN)
        drawing.draw_text(
            _MARGIN, y + 14, fit_text(self._graph.name, WIDTH - 40, 18, False), "head"
        )
        y += 32
        for stage in self._graph.stages:
            height = _measure_stage(stage)
            self._draw_stage(stage, y, height)
            y += height
            if stage.leaves:
                x = _MARGIN + _PAD + 22
                drawing.draw_line(x, y + 4, x, y + _BETWEEN - 4, arrow=True)
                text = fit_text(stage.leaves, WIDTH - x - 12 - _MARGIN)
                drawing.draw_text(x + 12, y + _BETWEEN / 2 + 4, text, "mono muted")
                y += _BETWEEN
        return drawing.render(WIDTH, y + _MARGIN)

    def _draw_stage(self, stage: Stage, y: float, height: float) -> None:
        drawing, colour = self._drawing, _COLOURS.get(stage.name, "blue")
        drawing.draw_rect(_MARGIN, y, WIDTH - 2 * _MARGIN, height, "panel", 10)
        drawing.draw_rect(_MARGIN, y + 10, 4, height - 20, colour, 2)
        left = _MARGIN + _PAD + 4
        drawing.draw_text(left, y + 22, stage.name, f"strong {colour}")
        drawing.draw_text(left + measure_width(stage.name) + 14, y + 22, stage.where, "muted small")
        self._draw_nodes(stage.nodes, left, y + _HEAD, WIDTH - _MARGIN - _PAD - left)

    def _draw_nodes(self, nodes: tuple[Node, ...], x: float, y: float, width: float) -> None:
        for number, node in enumerate(nodes):
            height = _measure_node(node)
            if node.aside and not nodes[number - 1].aside:
                self._drawing.draw_text(x, y + 12, ASIDE_TITLE, "mono amber")
                y += _TITLE
            elif number:
                self._drawing.draw_line(x + 18, y - _GAP + 1, x + 18, y - 1, arrow=True)
            self._draw_node(node, x, y, width, height)
            y += height + _GAP

    def _draw_node(self, node: Node, x: float, y: float, width: float, height: float) -> None:
        drawing = self._drawing
        drawing.draw_rect(x, y, width, height, "dashed" if node.aside else "node")
        name = f"{node.name} [{node.label}]" if node.label else node.name
        kind = "late_output" if node.aside and node.kind == "output" else node.kind
        name_text = fit_text(name, width - 40 - measure_width(kind), _BOLD, False)
        drawing.draw_text(x + 12, y + 18, name_text, "strong")
        drawing.draw_text(x + width - 12, y + 18, kind, "muted small", "end")
        if node.detail:
            drawing.draw_text(x + 12, y + 34, fit_text(node.detail, width - 24), "mono muted")
        below = y + (_NODE if node.detail else _BARE)
        for branch in node.branches:
            if branch.title:
                title = fit_text(branch.title, width - 48)
                drawing.draw_text(x + 24, below + 13, title, "mono amber")
            top = below + (_TITLE if branch.title else 0)
            self._draw_nodes(branch.nodes, x + 24, top, width - 36)
            below += _measure_branch(branch) + _GAP / 2
