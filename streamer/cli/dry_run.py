"""`streamer dry-run`: whether a stream could start, without moving a message."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from streamer.cli.completion.values import complete_config
from streamer.cli.options import Options, merge_options, open_config, parse_options, stream_options
from streamer.core.redaction import Redaction

if TYPE_CHECKING:
    from streamer.config import Config
    from streamer.plan import Plan

_HELP: Final = """\
Connect every input and output of a config without moving a message, and say what fails.

Files are opened, places to write to are looked at, the HTTP server's address (when the config names
one) and the checkpoint must be free, and a Java must be found. Nothing is read, written or made.
Spark is started, and stopped again, only with --spark. Exits with 1 when anything fails.

\b
  streamer dry-run -c config.yaml
  streamer dry-run -c config.yaml --spark --format json
"""

_OUTCOME_WORDS: Final = {True: ("ok", "green"), False: ("FAIL", "red"), None: ("-", "yellow")}


@click.command("dry-run", help=_HELP)
@click.argument("file", required=False, shell_complete=complete_config)
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
    """Check whether a stream could start, and print each check."""
    from streamer.plan import make_plan

    options = merge_options(root, parse_options(**given), file, "dry-run")
    failed = 0
    with open_config(options) as config:
        redaction = Redaction(config.secrets)
        for check in _run_checks(config, make_plan(config, "OFF"), options, with_spark):
            failed += check.ok is False
            name, detail = redaction.redact_text(check.name), redaction.redact_text(check.detail)
            if form == "json":
                row = {"name": name, "ok": check.ok, "detail": detail}
                click.echo(json.dumps(row, ensure_ascii=False))
                continue
            word, colour = _OUTCOME_WORDS[check.ok]
            end = f"  {detail}" if detail else ""
            click.echo(f"{click.style(f'{word:4}', fg=colour)}  {name}{end}")
    return int(failed > 0)


def _run_checks(config: Config, plan: Plan, options: Options, with_spark: bool) -> Iterator[Any]:
    from streamer.cli.run_stream import choose_checkpoint
    from streamer.tools.dry_run import environment_checks
    from streamer.tools.dry_run.check import CheckResult, run_check
    from streamer.tools.dry_run.components import check_components

    yield CheckResult("config", True, config.path or "(none: stdin to stdout)")
    yield from check_components(plan)
    section = config.redpanda
    if section is not None and section["seed_brokers"]:
        # Imported here: it needs a client of Kafka.
        from streamer.connectors.kafka.output.event_producer import probe_event_topics

        yield run_check("redpanda", lambda: probe_event_topics(section))
    http, log = config.http, config.logger["file"]["path"]
    if http["enabled"] and (http.is_given("address") or http.is_given("enabled")):
        yield run_check("http", lambda: _check_http_address(config))
    if log:
        yield run_check("logger.file", lambda: environment_checks.check_log_file(log))
    directory = choose_checkpoint(config, options)
    yield run_check("checkpoint", lambda: environment_checks.check_checkpoint(plan, directory))
    yield run_check("java", lambda: environment_checks.check_java(os.environ))
    if with_spark:
        yield run_check(
            "spark", lambda: environment_checks.check_spark(plan, config.spark, os.environ)
        )
    else:
        yield CheckResult("spark", None, "not started; --spark starts it")


def _check_http_address(config: Config) -> str:
    """Listen where the HTTP server would, for a moment.

    Raises:
        StreamerError: that cannot be, or the certificate is of no use.
    """
    # Imported here: aiohttp takes its time.
    from streamer.service.api.server import HttpServer
    from streamer.service.monitoring.stream_view import StreamView

    HttpServer.for_stream(StreamView(config)).stop()
    return f"{config.http['address']} is free"
