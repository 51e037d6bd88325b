"""`streamer graph`: the pipeline as a picture, with Spark's stages marked."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, Final

import click

from streamer.cli.completion.values import complete_config
from streamer.cli.log_output import is_terminal
from streamer.cli.options import Options, merge_options, open_config, parse_options, stream_options
from streamer.cli.output_option import out_option, write_output

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
@click.argument("file", required=False, shell_complete=complete_config)
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
    from streamer.config.echo import ConfigRedactor
    from streamer.plan import make_plan
    from streamer.tools.graph.mermaid import format_mermaid
    from streamer.tools.graph.model import build_graph
    from streamer.tools.graph.svg import draw_graph
    from streamer.tools.graph.text import format_graph

    with open_config(merge_options(root, parse_options(**given), file, "graph")) as config:
        graph = build_graph(make_plan(config), ConfigRedactor(config, os.environ))
    if form == "svg":
        write_output(out, draw_graph(graph))
    elif form == "mermaid":
        write_output(out, format_mermaid(graph))
    else:
        wide = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else 100
        write_output(
            out, format_graph(graph, lambda text, what: click.style(text, **_COLOURS[what]), wide)
        )
    return 0
