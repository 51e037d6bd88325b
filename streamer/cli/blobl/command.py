"""`streamer blobl`: a mapping over documents, by the function that Spark's workers run too."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, cast

import click

from streamer.bloblang import Mapping
from streamer.cli.blobl.drafts import FIRST_INPUT, FIRST_MAPPING, Drafts
from streamer.cli.blobl.given import compiled, mapping_text
from streamer.cli.blobl.output import Printer
from streamer.errors import StreamerError
from streamer.message import Execution
from streamer.trials.apply import Style, apply_to_all
from streamer.trials.given import with_variables
from streamer.trials.pieces import SPLITS, Readable, Split, pieces

_HELP: Final = """\
Apply a Bloblang mapping to JSON documents, and print each result as a line.

A document is a line. When the first line only begins a JSON document, documents are read over
several lines. One that fails is reported on stderr, and the next one is taken. For a document that
the mapping deletes, an empty line is printed.

On a terminal and without a mapping, an editor shows the result while you type.

\b
  cat docs.jsonl | streamer blobl 'root.id = this.user.id.uppercase()'
  streamer blobl -i docs.jsonl -f mapping.blobl --pretty
  streamer blobl -I -i doc.json -f mapping.blobl     edit both, see the result
  streamer blobl server                              the same in a browser
"""
_EPILOG: Final = (
    "Exits with 1 when the mapping or the input cannot be read; documents that fail don't count."
)
_MOST_EDITED: Final = 1 << 18


class _Blobl(click.Command):
    """A command whose first argument may be `server`, which is a command of its own."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Return the context of this command, or of `server`."""
        if args[:1] == ["server"]:
            command = importlib.import_module("streamer.cli.blobl.server_command").server_cli
            return cast(
                click.Context, command.make_context("blobl server", args[1:], parent, **extra)
            )
        return super().make_context(info_name, args, parent, **extra)


@click.command("blobl", cls=_Blobl, help=_HELP, epilog=_EPILOG)
@click.argument("mapping", required=False)
@click.option("-f", "--file", metavar="FILE", help="Take the mapping from a file.")
@click.option("-i", "--input", "source", metavar="FILE", help="Read a file instead of stdin.")
@click.option("-r", "--raw", is_flag=True, help="Documents are strings, not JSON.")
@click.option("-p", "--pretty", is_flag=True, help="Print JSON indented, over several lines.")
@click.option(
    "-t",
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Map with N processes; results stay in the order of the documents.",
)
@click.option(
    "--split",
    type=click.Choice(SPLITS),
    default="auto",
    help="Where a document ends: at the end of its line (lines), where its JSON ends (documents), "
    "or where the input ends (whole). The default looks at the first line.",
)
@click.option(
    "--max-token-length",
    type=click.IntRange(min=0),
    default=0,
    metavar="BYTES",
    help="Stop at a document or line that is not shorter; 0, the default, takes any length.",
)
@click.option(
    "--impure/--no-impure",
    default=True,
    help="Whether the mapping may read files and environment variables; it may by default.",
)
@click.option("--explain", is_flag=True, help="Print the Python that the mapping becomes.")
@click.option("-I", "--interactive", is_flag=True, help="Edit the mapping, and see what it does.")
def blobl_cli(
    mapping: str | None,
    file: str | None,
    source: str | None,
    raw: bool,
    pretty: bool,
    threads: int,
    split: Split,
    max_token_length: int,
    impure: bool,
    explain: bool,
    interactive: bool,
) -> int:
    """Apply a Bloblang mapping to documents, and print each result as a line."""
    nothing = mapping is None and file is None and not explain
    if interactive or (nothing and sys.stdin.isatty() and sys.stdout.isatty()):
        return _interact(mapping, file, source, Style(raw, True), impure)
    text = mapping_text(mapping, file)
    if text is None:
        raise click.UsageError("give a mapping, or --file, or -I to write one")
    ready = compiled(with_variables(text, file), file, impure)
    if explain:
        click.echo(ready.source, nl=not ready.source.endswith("\n"))
        return 0
    with _open(source) as stream:
        found = pieces(stream, split, max_token_length)
        _print_all(ready, found, Style(raw, pretty), threads)
    return 0


def _print_all(mapping: Mapping, found: Iterable[list[bytes]], style: Style, threads: int) -> None:
    printer = Printer()
    if _alone(mapping, threads):
        ex = Execution(time.time_ns)
        for documents in found:
            printer.print(apply_to_all(mapping, documents, style, ex))
    else:
        parallel = importlib.import_module("streamer.cli.blobl.parallel")
        parallel.run_in_processes(mapping, found, style, threads, printer)


def _open(source: str | None) -> AbstractContextManager[Readable]:
    if source is None:
        return nullcontext(cast(Readable, sys.stdin.buffer))
    try:
        return open(source, "rb")
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise StreamerError(f"failed to open input file {source}: {reason}") from None


def _alone(mapping: Mapping, threads: int) -> bool:
    """Whether one process does it: what documents share is not shared between processes."""
    if threads > 1 and mapping.uses.batch:
        click.echo("the mapping counts across documents, so one process applies it", err=True)
        return True
    return threads == 1


def _interact(
    mapping: str | None, file: str | None, source: str | None, style: Style, impure: bool
) -> int:
    # A file that is not there yet is one that is about to be written.
    new = file is not None and mapping is None and not os.path.exists(file)
    text = None if new else mapping_text(mapping, file)
    drafts = Drafts(FIRST_MAPPING if text is None else text, _first_input(source), file)
    interactive = importlib.import_module("streamer.cli.blobl.interactive")
    return int(interactive.run(drafts, style, impure, file))


def _first_input(source: str | None) -> str:
    """Return the input that the editor begins with: no more than a person looks at."""
    if source is None and sys.stdin.isatty():
        return FIRST_INPUT
    with _open(source) as stream:
        chunks = iter(lambda: stream.read1(_MOST_EDITED), b"")
        text = b""
        for chunk in chunks:
            text += chunk
            if len(text) >= _MOST_EDITED:
                text = text[:_MOST_EDITED]
                text = text[: text.rfind(b"\n") + 1] or text
                click.echo(f"the editor holds the first {len(text)} bytes of the input", err=True)
                break
    return text.decode(errors="replace")
