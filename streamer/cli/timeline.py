"""`streamer timeline`: which message falls into which window, and why one was dropped."""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import Any, Final

import click

from streamer.cli.hidden import hidden
from streamer.cli.opened import merged, opened
from streamer.cli.options import Options, options_of, stream_options
from streamer.cli.writing import out_option, write_out
from streamer.durations import parse_duration
from streamer.errors import StreamerError
from streamer.logs import is_terminal
from streamer.plan import make_plan
from streamer.timestamps import parse_event_time

_HELP: Final = """\
Show which message falls into which window, when each window closes, and why a message was dropped.

The messages of a file (a line each) run through the windows of the config on a clock of their
own, by the same code as on Spark, in no time. A message arrives at its event time, or with the one
before it when that is later, unless --step or --arrival says otherwise.

\b
  streamer timeline -c config.yaml --input sample.ndjson
  streamer timeline -c config.yaml --input - --clock 2026-11-21T10:00:00Z --step 500ms
  streamer timeline -c config.yaml --input sample.ndjson --format svg -o windows.svg
"""

_COLOURS: Final[dict[str, dict[str, Any]]] = {
    "head": {"bold": True},
    "time": {"fg": "cyan"},
    "taken": {"fg": "green"},
    "dropped": {"fg": "red"},
    "closed": {"fg": "yellow"},
    "payload": {"dim": True},
}


@click.command("timeline", help=_HELP)
@click.argument("file", required=False)
@click.option(
    "--input",
    "sample",
    metavar="FILE",
    required=True,
    help="Sample messages, one a line; - for the standard input.",
)
@click.option("--clock", metavar="TIME", help="When the first message arrives.")
@click.option("--step", metavar="DURATION", help="How long after it the next one does, and so on.")
@click.option(
    "--arrival",
    metavar="MAPPING",
    default="",
    help="A Bloblang mapping that gives a message's time of arrival: root = this.received_at",
)
@click.option(
    "--limit", type=click.IntRange(1), default=1000, show_default=True, help="Messages at most."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "svg"]),
    default="text",
    show_default=True,
    help="Lines for the terminal, JSON, or a drawing.",
)
@out_option
@stream_options
@click.pass_obj
def timeline_cli(
    root: Options,
    /,
    file: str | None,
    sample: str,
    clock: str | None,
    step: str | None,
    arrival: str,
    limit: int,
    form: str,
    out: str | None,
    **given: Any,
) -> int:
    """Show which message falls into which window."""
    # These run the windows, which are made with numpy and pyarrow: not for --help.
    from streamer.engine.sample import sample_of_file
    from streamer.timeline.record import Arrivals, record

    arrivals = Arrivals(
        None if clock is None else _read("--clock", clock, parse_event_time),
        None if step is None else _read("--step", step, parse_duration),
        arrival,
    )
    with opened(merged(root, options_of(**given), file, "timeline")) as config:
        plan = make_plan(config, "OFF")
        batches = sample_of_file(sample, limit + 1)
        found = record(plan, batches[:limit], arrivals, time.time_ns)
        found.hide(hidden(config, show_env=False))
    write_out(out, _written(found, form))
    if len(batches) > limit:
        click.echo(f"there are more messages; these are the first {limit:,} (--limit)", err=True)
    return 0


def _read(option: str, text: str, reader: Any) -> int:
    try:
        value: int = reader(text)
    except ValueError as e:
        raise StreamerError(f"{option} {text}: {e}") from None
    if value < 0 and option == "--step":
        raise StreamerError(f"{option} {text}: time does not run backwards; expected 0s or more")
    return value


def _written(found: Any, form: str) -> str:
    from streamer.timeline.plain import plain
    from streamer.timeline.svg import svg_of
    from streamer.timeline.text import text_of

    if form == "svg":
        return svg_of(found)
    if form == "json":
        return json.dumps(plain(found), ensure_ascii=False) + "\n"
    wide = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else 180
    return text_of(found, lambda text, what: click.style(text, **_COLOURS[what]), wide)
