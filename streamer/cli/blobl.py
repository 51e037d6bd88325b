"""`streamer blobl`: a mapping over the lines of stdin, by the function that workers run too."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Final

import click
import orjson

from streamer.bloblang import BloblangError, Mapping, compile_mapping
from streamer.config.env import replace_variables
from streamer.config.findings import Findings
from streamer.config.source import Source
from streamer.errors import MessageError, StreamerError
from streamer.message import Execution, Message
from streamer.value import DELETED, NOTHING, dump_json

_HELP: Final = """\
Apply a Bloblang mapping to each line of stdin, and print each result as a line.

A line that fails is reported on stderr, and the next one is taken. A message that the mapping
deletes prints an empty line.

\b
  cat docs.jsonl | streamer blobl 'root.id = this.user.id.uppercase()'
  streamer blobl -i docs.jsonl -f mapping.blobl --pretty
"""


@click.command("blobl", help=_HELP)
@click.argument("mapping", required=False)
@click.option("-f", "--file", metavar="FILE", help="Take the mapping from a file.")
@click.option("-i", "--input", "source", metavar="FILE", help="Read a file instead of stdin.")
@click.option("-r", "--raw", is_flag=True, help="Lines are strings, not JSON documents.")
@click.option("-p", "--pretty", is_flag=True, help="Print JSON indented, over several lines.")
@click.option("-t", "--threads", type=int, default=1, hidden=True)
@click.option("--max-token-length", type=int, default=0, hidden=True)
def blobl_cli(
    mapping: str | None,
    file: str | None,
    source: str | None,
    raw: bool,
    pretty: bool,
    threads: int,
    max_token_length: int,
) -> int:
    """Apply a Bloblang mapping to each line of stdin, and print each result as a line."""
    if (mapping is None) == (file is None):
        raise click.UsageError("give either a mapping or --file")
    compiled = _compile(_read_text(file) if file else mapping or "", file or "")
    ex = Execution(time.time_ns)
    out = sys.stdout.buffer
    with _open(source) as lines:
        for line in lines:
            try:
                result = _apply(compiled, line.rstrip(b"\n").removesuffix(b"\r"), raw, pretty, ex)
            except MessageError as e:
                failure = click.style(f"failed to execute map: {e}", fg="red")
                click.echo(failure, err=True)
                continue
            out.write(result + b"\n")
            # A reader downstream sees each line at once, as from Benthos.
            out.flush()
    return 0


def _read_text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise StreamerError(f"failed to read mapping file {file}: {e}") from None


def _open(source: str | None) -> BinaryIO:
    if source is None:
        return sys.stdin.buffer
    try:
        return open(source, "rb")
    except OSError as e:
        raise StreamerError(f"failed to open input file {source}: {e.strerror}") from None


def _compile(text: str, file: str) -> Mapping:
    source, findings = Source(file, text), Findings()
    replace_variables(source, os.environ, findings)
    if findings:
        lint = findings.sorted()[0]
        raise StreamerError(f"failed to replace env vars: {lint.message}; {lint.suggestion}")
    try:
        return compile_mapping(source.text)
    except BloblangError as e:
        raise StreamerError(_failed_to_parse(source.text, e)) from None


def _failed_to_parse(text: str, error: BloblangError) -> str:
    lines = text.split("\n")
    line = lines[error.line - 1] if 0 < error.line <= len(lines) else ""
    margin = " " * len(str(error.line))
    return (
        f"failed to parse mapping: {error}\n"
        f"{margin} |\n"
        f"{error.line} | {line}\n"
        f"{margin} | {' ' * (error.column - 1)}^---"
    )


def _apply(mapping: Mapping, line: bytes, raw: bool, pretty: bool, ex: Execution) -> bytes:
    """Return what a mapping makes of one line, as it is printed."""
    message = Message(line, doc=line) if raw else Message(line)
    value = mapping.query([message], 0, ex)
    if value is DELETED:
        return b""
    if value is NOTHING:
        try:
            value = message.doc
        except MessageError:
            return line
    return _printed(value, pretty)


def _printed(value: Any, pretty: bool) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raw = dump_json(value)
    if pretty:
        return orjson.dumps(orjson.loads(raw), option=orjson.OPT_INDENT_2)
    return raw
