"""`streamer graph`: the pipeline as a picture, with Spark's stages marked."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, Final

import click

from streamer.cli.opened import merged, opened
from streamer.cli.options import Options, options_of, stream_options
from streamer.cli.writing import out_option, write_out
from streamer.config.echo import Shown
from streamer.graph.mermaid import mermaid_of
from streamer.graph.model import graph_of
from streamer.graph.svg import svg_of
from streamer.graph.text import text_of
from streamer.logs import is_terminal
from streamer.plan import make_plan

_HELP: Final = """\
Draw the way of a message through a config, with the stages that Spark runs.

Nothing is read or written, and Spark is not started. Secrets are not shown, nor what environment
variables hold.

\b
  streamer graph -c config.yaml
  streamer graph -c config.yaml --format svg -o pipeline.svg
"""

_COLOURS: Final[dict[str, dict[str, Any]]] = {
    "head": {"bold": True},
    "stage": {"fg": "cyan", "bold": True},
    "name": {"bold": True},
    "detail": {"dim": True},
}


@click.command("graph", help=_HELP)
@click.argument("file", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "svg"]),
    default="text",
    show_default=True,
    help="A tree for the terminal, Mermaid's language, or a drawing.",
)
@out_option
@stream_options
@click.pass_obj
def graph_cli(root: Options, /, file: str | None, form: str, out: str | None, **given: Any) -> int:
    """Draw a config."""
    with opened(merged(root, options_of(**given), file, "graph")) as config:
        graph = graph_of(make_plan(config), Shown(config, os.environ))
    if form == "svg":
        write_out(out, svg_of(graph))
    elif form == "mermaid":
        write_out(out, mermaid_of(graph))
    else:
        wide = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else 100
        write_out(out, text_of(graph, lambda text, what: click.style(text, **_COLOURS[what]), wide))
    return 0
