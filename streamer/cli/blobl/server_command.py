"""`streamer blobl server`: write mappings in a browser, and see what they do."""

from __future__ import annotations

import os
import sys
from typing import Final

import click

from streamer.cli.blobl.editor_state import INITIAL_INPUT, INITIAL_MAPPING, EditorState
from streamer.cli.blobl.mapping_source import read_text
from streamer.cli.completion.values import FILE

_HELP: Final = """\
Serve a page with input, mapping and result side by side; the result follows as you type.

It is meant for one person on one machine: it listens on 127.0.0.1 and has no login. Mappings may
not read files and environment variables (the reverse of streamer blobl), unless --impure is given;
each is tried in a process of its own, with a limit on its time and memory.

\b
  streamer blobl server
  streamer blobl server -m mapping.blobl -i doc.json --write
"""


@click.command("server", help=_HELP)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    default=4195,
    show_default=True,
    help="The port to listen on; 0 takes one that is free.",
)
@click.option("-n", "--no-open", is_flag=True, help="Don't open the page in a browser.")
@click.option(
    "-m", "--mapping-file", type=FILE, metavar="FILE", help="Begin with the mapping of a file."
)
@click.option(
    "-i", "--input-file", type=FILE, metavar="FILE", help="Begin with the input of a file."
)
@click.option(
    "-w",
    "--write",
    is_flag=True,
    help="Write what is edited back to these files; one that does not exist is created.",
)
@click.option(
    "--impure/--no-impure",
    default=False,
    help="Whether mappings may read files and environment variables; they may not by default.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0.05),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a mapping may run.",
)
def server_cli(
    host: str,
    port: int,
    no_open: bool,
    mapping_file: str | None,
    input_file: str | None,
    write: bool,
    impure: bool,
    time_limit: float,
) -> int:
    """Serve a page with input, mapping and result side by side."""
    if write and not (mapping_file or input_file):
        raise click.UsageError("--write needs --mapping-file or --input-file: where should it go?")
    # Imported after the files are read: a wrong name should be told at once.
    mapping = _read_initial(mapping_file, "mapping", INITIAL_MAPPING, write)
    text = _read_initial(input_file, "input", INITIAL_INPUT, write)
    from streamer.cli.blobl.server import ServerSettings, serve

    drafts = EditorState(
        mapping, text, mapping_file if write else None, input_file if write else None
    )
    serve(
        ServerSettings(host, port, impure, time_limit, mapping_file, _can_open_browser(no_open)),
        drafts,
    )
    return 0


def _read_initial(file: str | None, what: str, otherwise: str, write: bool) -> str:
    if file is None or (write and not os.path.exists(file)):
        return otherwise
    return read_text(file, what)


def _can_open_browser(no_open: bool) -> bool:
    """Whether a browser with a window can be expected: not in a pipe, nor on a server."""
    windows = sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    return not no_open and windows and sys.stdout.isatty()
