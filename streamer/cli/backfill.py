"""`streamer backfill`: the windows of a stream's past, as a batch that can be resumed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from streamer.cli.completion.values import DIRECTORY, FILE, complete_config
from streamer.cli.options import (
    Options,
    gather_options,
    merge_options,
    open_config,
    parse_options,
    stream_options,
)
from streamer.core.errors import StreamerError
from streamer.core.timestamps import parse_rfc3339

if TYPE_CHECKING:
    from streamer.config import Config
    from streamer.plan import Plan
    from streamer.service.backfill.backfill import (
        Backfill,
        BackfillOptions,
        BackfillOutcome,
        BackfillProgress,
    )
    from streamer.service.backfill.estimate import CostEstimate

_HELP: Final = """\
Run the past of a stream as a batch: the windows that the stream gives, many parts side by side.

The same config runs over files, objects, tables or Kafka, without Spark, on the cores of this
machine. Results go to the config's output, or to a file. What it costs is said first. A backfill
that was stopped or killed goes on where it was: give the same command again. With --hand-over, the
live stream goes on behind it, with the windows that are open there.

\b
  streamer backfill config.yaml --estimate
  streamer backfill config.yaml --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z
  streamer backfill config.yaml --hand-over checkpoints/cars
"""
_RANGES_PER_PROCESS: Final = 4
_MICRO_BATCH: Final = 100_000


@dataclass(frozen=True)
class _Own:
    """The options of the command itself."""

    from_text: str | None
    to_text: str | None
    ranges: int | None
    processes: int | None
    micro_batch: int
    work: str | None
    hand_over: str | None
    output: str | None
    estimate: bool
    afresh: bool


@click.command("backfill", help=_HELP, short_help="Run the past of a stream as a batch.")
@click.argument("file", required=False, shell_complete=complete_config)
@click.option(
    "--from", "from_text", metavar="TIME", help="Only windows that end after it (RFC 3339)."
)
@click.option("--to", "to_text", metavar="TIME", help="Only windows that end by then (RFC 3339).")
@click.option(
    "--ranges",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Into how many ranges the input is cut.  [default: 4 for each process]",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    metavar="N",
    help="How many processes run at once.  [default: the cores]",
)
@click.option(
    "--micro-batch",
    type=click.IntRange(1, 10_000_000),
    default=_MICRO_BATCH,
    show_default=True,
    metavar="N",
    help="About how many messages are read at a time.",
)
@click.option(
    "--work",
    type=DIRECTORY,
    metavar="DIR",
    help="Where the work is kept until it is done.  [default: by the config and its bounds]",
)
@click.option(
    "--hand-over",
    type=DIRECTORY,
    metavar="DIR",
    help="Write a checkpoint there, from which `streamer run --checkpoint DIR` goes on.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=FILE,
    help="Write results to this file instead of the config's output.",
)
@click.option("--estimate", is_flag=True, help="Say what it costs, and stop.")
@click.option("--afresh", is_flag=True, help="Forget what an earlier backfill has done.")
@stream_options
@gather_options(_Own)
@click.pass_obj
def backfill_cli(root: Options, own: _Own, /, file: str | None, **given: Any) -> int:
    """Run the past of a stream as a batch."""
    options = merge_options(root, parse_options(**given), file, "backfill")
    with open_config(options) as config:
        return _run(config, options, own)


def _run(config: Config, options: Options, own: _Own) -> int:
    from streamer.cli.run_log import RunLog
    from streamer.cli.signal_handler import SignalHandler
    from streamer.plan import make_plan
    from streamer.service.backfill.backfill import Backfill, identify, remove_work

    log = RunLog(config, options.log_level or "ERROR")
    plan = _with_output(make_plan(config, level=log.level), own.output)
    way = _read_way(own)
    text = Path(config.path).read_text(encoding="utf-8") if config.path else ""
    identity = identify(plan, text, way)
    work = Path(own.work) if own.work else _default_work(config, identity)
    backfill = Backfill(plan, work, way, identity, log)
    if own.afresh:
        remove_work(work)
    handlers = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    stopper = SignalHandler(lambda line: click.echo(line, err=True))
    line = _ProgressLine(sys.stderr.isatty())
    try:
        backfill.open()
        _print_start(backfill, backfill.estimate())
        if own.estimate:
            backfill.is_over = not backfill.is_resumed
            return 0
        outcome = backfill.run(sys.stdout.buffer, line.show, stopper.stop_requested.is_set)
    finally:
        line.end()
        backfill.close()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    _print_end(outcome, own)
    return 0 if outcome.is_complete else 1


def _read_way(own: _Own) -> BackfillOptions:
    from streamer.plan.plan import count_cores
    from streamer.service.backfill.backfill import BackfillOptions
    from streamer.service.backfill.tasks import Bounds

    processes = own.processes or count_cores("")
    bounds = Bounds(
        _parse_time("--from", own.from_text), _parse_time("--to", own.to_text), bool(own.hand_over)
    )
    return BackfillOptions(
        bounds=bounds,
        processes=processes,
        ranges=own.ranges or processes * _RANGES_PER_PROCESS,
        micro_batch=own.micro_batch,
        hand_over=own.hand_over or "",
    )


def _parse_time(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_rfc3339(text).ns
    except ValueError:
        raise StreamerError(
            f"{option} {text}: expected a time with its zone, such as 2026-01-01T00:00:00Z"
        ) from None


def _with_output(plan: Plan, path: str | None) -> Plan:
    """Return a plan that writes to a file, behind the processors of the config's output."""
    if path is None:
        return plan
    import json

    from streamer.plan.component_text import parse_component
    from streamer.sdk.spec import Kind

    file = parse_component(Kind.OUTPUT, json.dumps({"file": {"path": path, "codec": "lines"}}))
    file = replace(file, path=plan.output.path, processors=plan.output.processors)
    if plan.buffers:
        raise StreamerError(
            "--output needs one window buffer, and this config has several: change the outputs "
            "with -s"
        )
    return replace(plan, output=file)


def _default_work(config: Config, identity: str) -> Path:
    """Return the directory of a backfill: each config, with its bounds, has one by itself."""
    from streamer.plan.checkpoint_dir import default_checkpoint

    checkpoint = default_checkpoint(config.path, os.environ)
    return checkpoint.with_name(f"{checkpoint.name}-backfill-{identity[:8]}")


def _print_start(backfill: Backfill, cost: CostEstimate | None) -> None:
    words = {"ranges": "by ranges of the input", "keys": "by keys", "whole": "as one range"}
    division = backfill.division
    click.echo(f"windows are divided {words[division.kind]}: {division.reason}", err=True)
    if not backfill.plan.master.startswith("local"):
        click.echo(
            "spark.master is not used: a backfill runs without Spark, on the cores of this "
            "machine; on several machines, give each one its own --from and --to",
            err=True,
        )
    if cost is None:
        click.echo("the input has no messages", err=True)
        return
    click.echo(
        f"estimate: {cost.messages:,} messages in {cost.segments:,} micro-batches, "
        f"{cost.cpu_seconds:,.1f} s of CPU, {cost.seconds:,.1f} s, "
        f"{cost.disk_bytes / (1 << 20):,.1f} MiB of disk in {backfill.work.root}",
        err=True,
    )
    if backfill.is_resumed:
        click.echo("an earlier run of this backfill goes on", err=True)


def _print_end(outcome: BackfillOutcome, own: _Own) -> None:
    if not outcome.is_complete:
        click.echo("stopped; the same command goes on where it was", err=True)
        return
    dropped = outcome.dropped or {}
    parts = [f"{number:,} dropped ({reason})" for reason, number in sorted(dropped.items())]
    text = (
        f"done in {outcome.seconds:.1f} s: {outcome.windows:,} windows, {outcome.messages:,} "
        f"messages sent{''.join(f', {part}' for part in parts)}"
    )
    click.echo(text, err=True)
    if own.hand_over:
        click.echo(
            f"{own.hand_over}: the live stream goes on with {outcome.held:,} messages in open "
            f"windows: streamer run --checkpoint {own.hand_over}",
            err=True,
        )


class _ProgressLine:
    """A bar on a terminal; elsewhere a line for each tenth."""

    def __init__(self, is_terminal: bool) -> None:
        self._is_terminal, self._is_shown = is_terminal, False
        self._shown: tuple[str, int] | None = None
        self._write: Callable[[str], object] = sys.stderr.write

    def show(self, progress: BackfillProgress) -> None:
        """Show how far the backfill has got."""
        self._is_shown = True
        share = progress.done / progress.total if progress.total else 1.0
        names = {"scan": "reading", "windows": "windows", "done": "done"}
        text = (
            f"{names[progress.step]:8} {progress.done:,} of {progress.total:,} "
            f"({share:.0%}), {progress.sent:,} messages sent"
        )
        if self._is_terminal:
            bar = "#" * int(share * 20)
            self._write(f"\r[{bar:20}] {text}\x1b[K")
            sys.stderr.flush()
            return
        mark = progress.step, int(share * 10)
        if mark != self._shown:
            self._shown = mark
            click.echo(text, err=True)

    def end(self) -> None:
        """Leave the bar behind."""
        if self._is_terminal and self._is_shown:
            self._write("\n")
