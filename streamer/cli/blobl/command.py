"""`streamer blobl`: a mapping over documents, by the function that Spark's workers run too."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, cast

import click

from streamer.bloblang import Mapping
from streamer.cli.blobl.editor_state import INITIAL_INPUT, INITIAL_MAPPING, EditorState
from streamer.cli.blobl.mapping_source import compile_text, read_mapping
from streamer.cli.blobl.output import Printer
from streamer.cli.completion.values import FILE
from streamer.cli.options import gather_options
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.keyed_state import TransientState
from streamer.tools.playground.apply import DocumentStyle, apply_to_all
from streamer.tools.playground.mapping_environment import substitute_variables
from streamer.tools.playground.split_documents import SPLITS, Readable, Split, split_documents

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
_MAX_EDITED_BYTES: Final = 1 << 18


class _BloblCommand(click.Command):
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


@dataclass(frozen=True)
class BloblOptions:
    """The options of the command."""

    mapping: str | None
    file: str | None
    source: str | None
    raw: bool
    pretty: bool
    threads: int
    split: Split
    max_token_length: int
    impure: bool
    explain: bool
    interactive: bool


@click.command("blobl", cls=_BloblCommand, help=_HELP, epilog=_EPILOG)
@click.argument("mapping", required=False)
@click.option("-f", "--file", type=FILE, metavar="FILE", help="Take the mapping from a file.")
@click.option(
    "-i", "--input", "source", type=FILE, metavar="FILE", help="Read a file instead of stdin."
)
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
@gather_options(BloblOptions)
def blobl_cli(own: BloblOptions) -> int:
    """Apply a Bloblang mapping to documents, and print each result as a line."""
    nothing = own.mapping is None and own.file is None and not own.explain
    if own.interactive or (nothing and sys.stdin.isatty() and sys.stdout.isatty()):
        return _run_editor(own)
    text = read_mapping(own.mapping, own.file)
    if text is None:
        raise click.UsageError("give a mapping, or --file, or -I to write one")
    compiled_mapping = compile_text(substitute_variables(text, own.file), own.file, own.impure)
    if own.explain:
        click.echo(compiled_mapping.source, nl=not compiled_mapping.source.endswith("\n"))
        return 0
    with _open_input(own.source) as stream:
        batches = split_documents(stream, own.split, own.max_token_length)
        _print_all(compiled_mapping, batches, DocumentStyle(own.raw, own.pretty), own.threads)
    return 0


def _print_all(
    mapping: Mapping, batches: Iterable[list[bytes]], style: DocumentStyle, threads: int
) -> None:
    printer = Printer()
    if _needs_one_process(mapping, threads):
        ex = Execution(time.time_ns)
        ex.keyed_state = TransientState()
        for documents in batches:
            printer.print(apply_to_all(mapping, documents, style, ex))
    else:
        parallel = importlib.import_module("streamer.cli.blobl.parallel")
        parallel.run_in_processes(mapping, batches, style, threads, printer)


def _open_input(source: str | None) -> AbstractContextManager[Readable]:
    if source is None:
        return nullcontext(cast(Readable, sys.stdin.buffer))
    try:
        return open(source, "rb")
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise StreamerError(f"failed to open input file {source}: {reason}") from None


def _needs_one_process(mapping: Mapping, threads: int) -> bool:
    """Whether one process does it: what documents share is not shared between processes."""
    if threads > 1 and (mapping.uses.batch or mapping.uses.keyed_state):
        click.echo("the mapping counts across documents, so one process applies it", err=True)
        return True
    return threads == 1


def _run_editor(own: BloblOptions) -> int:
    # A file that is not there yet is one that is about to be written.
    file = own.file
    new = file is not None and own.mapping is None and not os.path.exists(file)
    text = None if new else read_mapping(own.mapping, file)
    first = _read_first_input(own.source)
    drafts = EditorState(INITIAL_MAPPING if text is None else text, first, file)
    interactive = importlib.import_module("streamer.cli.blobl.interactive")
    return int(interactive.run(drafts, DocumentStyle(own.raw, True), own.impure, file))


def _read_first_input(source: str | None) -> str:
    """Return the input that the editor begins with: no more than a person looks at."""
    if source is None and sys.stdin.isatty():
        return INITIAL_INPUT
    with _open_input(source) as stream:
        chunks = iter(lambda: stream.read1(_MAX_EDITED_BYTES), b"")
        text = b""
        for chunk in chunks:
            text += chunk
            if len(text) >= _MAX_EDITED_BYTES:
                text = text[:_MAX_EDITED_BYTES]
                text = text[: text.rfind(b"\n") + 1] or text
                click.echo(f"the editor holds the first {len(text)} bytes of the input", err=True)
                break
    return text.decode(errors="replace")
