"""A graph as a tree of lines, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamer.tools.graph.model import ASIDE_TITLE, Branch, Graph, Node, Stage
from streamer.tools.text_style import Style, keep_text


def format_graph(graph: Graph, style: Style = keep_text, width: int = 100) -> str:
    """Return the lines of a graph; details are cut at `width` columns."""
    return "\n".join(_format_lines(graph, style, width)) + "\n"


def _format_lines(graph: Graph, style: Style, width: int) -> Iterator[str]:
    yield style(graph.name, "head")
    for number, stage in enumerate(graph.stages):
        last = number == len(graph.stages) - 1
        where = style(f"({stage.where})", "detail")
        yield f"{'└─' if last else '├─'} {style(stage.name, 'stage')} {where}"
        pad = "   " if last else "│  "
        yield from _format_stage(stage, pad, style, width)
        if stage.leaves:
            yield f"│  {style(_shorten_text(f'▼ {stage.leaves}', width - 3), 'detail')}"


def _format_stage(stage: Stage, pad: str, style: Style, width: int) -> Iterator[str]:
    """Put what goes aside below a line of its own."""
    way = [node for node in stage.nodes if not node.aside]
    aside = [node for node in stage.nodes if node.aside]
    yield from _format_nodes(way, pad, style, width, more=bool(aside))
    if aside:
        yield f"{pad}└─ {style(ASIDE_TITLE, 'detail')}"
        yield from _format_nodes(aside, f"{pad}   ", style, width)


def _format_nodes(
    nodes: Sequence[Node], pad: str, style: Style, width: int, more: bool = False
) -> Iterator[str]:
    for number, node in enumerate(nodes):
        last = number == len(nodes) - 1 and not more
        yield pad + _format_node(node, "└─" if last else "├─", width - len(pad), style)
        below = pad + ("   " if last else "│  ")
        yield from _format_branches(node.branches, below, style, width)


def _format_branches(
    branches: Sequence[Branch], pad: str, style: Style, width: int
) -> Iterator[str]:
    for number, branch in enumerate(branches):
        if not branch.title and len(branches) == 1:
            yield from _format_nodes(branch.nodes, pad, style, width)
            continue
        last = number == len(branches) - 1
        title = branch.title or f"{number + 1}"
        shown = style(_shorten_text(title, width - len(pad) - 3), "detail")
        yield f"{pad}{'└─' if last else '├─'} {shown}"
        yield from _format_nodes(branch.nodes, pad + ("   " if last else "│  "), style, width)


def _format_node(node: Node, mark: str, width: int, style: Style) -> str:
    kind = "late_output" if node.aside and node.kind == "output" else node.kind
    name = node.name if node.kind == "processor" else f"{kind} {node.name}"
    label = f" [{node.label}]" if node.label else ""
    detail = _shorten_text(node.detail, width - len(mark) - len(name) - len(label) - 3)
    end = f"  {style(detail, 'detail')}" if detail else ""
    return f"{mark} {style(name, 'name')}{label}{end}"


def _shorten_text(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"
