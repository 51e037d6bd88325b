"""`streamer dry-run`: whether a stream could start, without moving a message."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Final

import click

from streamer.cli.opened import merged, opened
from streamer.cli.options import Options, options_of, stream_options
from streamer.cli.run import checkpoint_of
from streamer.config import Config
from streamer.plan import Plan, make_plan
from streamer.redaction import Redaction

_HELP: Final = """\
Connect every input and output of a config without moving a message, and say what fails.

Files are opened, places to write to are looked at, the HTTP server's address (when the config names
one) and the checkpoint must be free, and a Java must be found. Nothing is read, written or made.
Spark is started, and stopped again, only with --spark. Exits with 1 when anything fails.

\b
  streamer dry-run -c config.yaml
  streamer dry-run -c config.yaml --spark --format json
"""

_WORDS: Final = {True: ("ok", "green"), False: ("FAIL", "red"), None: ("-", "yellow")}


@click.command("dry-run", help=_HELP)
@click.argument("file", required=False)
@click.option("--spark", "with_spark", is_flag=True, help="Start a Spark session too.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json has a line for each check.",
)
@stream_options
@click.pass_obj
def dry_run_cli(
    root: Options, /, file: str | None, with_spark: bool, form: str, **given: Any
) -> int:
    """Say whether a stream could start."""
    options = merged(root, options_of(**given), file, "dry-run")
    failed = 0
    with opened(options) as config:
        redaction = Redaction(config.secrets)
        for check in _checks(config, make_plan(config, "OFF"), options, with_spark):
            failed += check.ok is False
            name, detail = redaction.text(check.name), redaction.text(check.detail)
            if form == "json":
                found = {"name": name, "ok": check.ok, "detail": detail}
                click.echo(json.dumps(found, ensure_ascii=False))
                continue
            word, colour = _WORDS[check.ok]
            end = f"  {detail}" if detail else ""
            click.echo(f"{click.style(f'{word:4}', fg=colour)}  {name}{end}")
    return int(failed > 0)


def _checks(config: Config, plan: Plan, options: Options, with_spark: bool) -> Iterator[Any]:
    from streamer.dryrun import surroundings
    from streamer.dryrun.check import Check, checked
    from streamer.dryrun.components import component_checks

    yield Check("config", True, config.path or "(none: stdin to stdout)")
    yield from component_checks(plan)
    http, log = config.http, config.logger["file"]["path"]
    if http["enabled"] and (http.given("address") or http.given("enabled")):
        yield checked("http", lambda: _listening(config))
    if log:
        yield checked("logger.file", lambda: surroundings.log_file(log))
    directory = checkpoint_of(config, options)
    yield checked("checkpoint", lambda: surroundings.checkpoint(plan, directory))
    yield checked("java", lambda: surroundings.java(os.environ))
    if (jars := surroundings.kafka_jars(plan, config.spark, os.environ)) is not None:
        yield jars
    if with_spark:
        yield checked("spark", lambda: surroundings.spark(plan, config.spark, os.environ))
    else:
        yield Check("spark", None, "not started; --spark starts it")


def _listening(config: Config) -> str:
    """Listen where the HTTP server would, for a moment.

    Raises:
        StreamerError: that cannot be, or the certificate is of no use.
    """
    # Imported here: aiohttp takes its time.
    from streamer.service.server import HttpServer
    from streamer.service.view import StreamView

    HttpServer.of_stream(StreamView(config)).stop()
    return f"{config.http['address']} is free"
