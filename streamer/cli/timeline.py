"""`streamer timeline`: which message falls into which window, and why one was dropped."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

import click

from streamer.cli.completion.values import FILE, complete_buffer_label, complete_config
from streamer.cli.log_output import is_terminal
from streamer.cli.options import (
    Options,
    gather_options,
    merge_options,
    open_config,
    parse_options,
    stream_options,
)
from streamer.cli.output_option import out_option, write_output
from streamer.cli.redact_output import build_redactor
from streamer.cli.stdin_notice import announce_stdin
from streamer.core.durations import parse_duration
from streamer.core.errors import StreamerError
from streamer.core.timestamps import parse_event_time

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


@dataclass(frozen=True)
class TimelineOptions:
    """The options of the command itself; without `clock`, messages arrive when they are read."""

    sample: str
    clock: str | None
    step: str | None
    arrival: str
    buffer: str
    limit: int
    form: str
    out: str | None


@click.command("timeline", help=_HELP)
@click.argument("file", required=False, shell_complete=complete_config)
@click.option(
    "--input",
    "sample",
    type=FILE,
    metavar="FILE",
    default="-",
    help="Sample messages, one a line. The standard input without it, or for -.",
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
    "--buffer",
    metavar="LABEL",
    shell_complete=complete_buffer_label,
    default="",
    help="Of several buffers, the one that is shown; the first one behind the input by itself.",
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
@gather_options(TimelineOptions)
def timeline_cli(root: Options, own: TimelineOptions, /, file: str | None, **given: Any) -> int:
    """Show which message falls into which window."""
    # These run the windows, which are made with numpy and pyarrow: not for --help.
    from streamer.engine.offline.arrival_clock import ArrivalTimes
    from streamer.engine.offline.sample_input import read_file_sample
    from streamer.plan import make_plan
    from streamer.tools.timeline.simulate_results import simulate_buffer

    arrivals = ArrivalTimes(
        None if own.clock is None else _parse_option("--clock", own.clock, parse_event_time),
        None if own.step is None else _parse_option("--step", own.step, parse_duration),
        own.arrival,
    )
    with open_config(merge_options(root, parse_options(**given), file, "timeline")) as config:
        plan = make_plan(config, "OFF")
        announce_stdin(own.sample == "-")
        batches = read_file_sample(own.sample, own.limit + 1)
        timeline = simulate_buffer(plan, own.buffer, batches[: own.limit], arrivals, time.time_ns)
        if len(batches) > own.limit:
            timeline.mark_cut()
        timeline.redact(build_redactor(config, show_env=False))
    write_output(own.out, _render_timeline(timeline, own.form))
    if len(batches) > own.limit:
        text = f"there are more messages; these are the first {own.limit:,} (--limit)"
        click.echo(text, err=True)
    return 0


def _parse_option(option: str, text: str, reader: Any) -> int:
    try:
        value: int = reader(text)
    except ValueError as e:
        raise StreamerError(f"{option} {text}: {e}") from None
    if value < 0 and option == "--step":
        raise StreamerError(f"{option} {text}: time does not run backwards; expected 0s or more")
    return value


def _render_timeline(timeline: Any, form: str) -> str:
    from streamer.tools.timeline.json_document import to_json_document
    from streamer.tools.timeline.svg import draw_timeline
    from streamer.tools.timeline.text import format_timeline

    if form == "svg":
        return draw_timeline(timeline)
    if form == "json":
        return json.dumps(to_json_document(timeline), ensure_ascii=False) + "\n"
    wide = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else 180
    return format_timeline(timeline, lambda text, what: click.style(text, **_COLOURS[what]), wide)
