"""`streamer explain -c config.yaml`: what would run where, without starting anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from streamer.cli.completion.values import FILE, complete_config
from streamer.cli.options import (
    Options,
    gather_options,
    merge_options,
    open_config,
    parse_options,
    stream_options,
)
from streamer.core.redaction import Redaction

if TYPE_CHECKING:
    from streamer.config import Config


@dataclass(frozen=True)
class _CostOptions:
    """The options of the command itself."""

    with_cost: bool
    samples: tuple[str, ...]
    limit: int
    rate: float | None
    backlog: float | None


@click.command("explain", short_help="Show how a config would run.")
@click.argument("file", required=False, shell_complete=complete_config)
@click.option("--cost", "with_cost", is_flag=True, help="Say what the stream will take.")
@click.option(
    "--input",
    "samples",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="With --cost: messages instead of the input's, one a line; - for the standard input. Of "
    "several inputs, LABEL=FILE for each.",
)
@click.option(
    "--sample",
    "limit",
    type=click.IntRange(100, 1_000_000),
    default=20_000,
    show_default=True,
    metavar="N",
    help="With --cost: how many messages are taken.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="With --cost: messages a second.  [default: by the event times of the sample]",
)
@click.option(
    "--backlog",
    type=click.FloatRange(1),
    metavar="N",
    help="With --cost: messages that wait when the stream catches up.  [default: those of an hour]",
)
@stream_options
@gather_options(_CostOptions)
@click.pass_obj
def explain_cli(root: Options, own: _CostOptions, /, file: str | None, **given: Any) -> int:
    """Show the plan of a config: its stages, shards and windows, and where processors run.

    Nothing is read or written, and Spark is not started. With --cost, the first messages are read,
    and run through the stages: state, CPU, memory, what has no bound, and settings that cost less.
    """
    options = merge_options(root, parse_options(**given), file, "explain")
    with open_config(options) as config:
        explain_command(config, options)
        return _print_cost(config, own) if own.with_cost else 0


def _print_cost(config: Config, own: _CostOptions) -> int:
    """Print what a stream will take, by a sample of its messages.

    Raises:
        StreamerError: the sample cannot be read.
    """
    from streamer.plan import make_plan
    from streamer.tools.cost.estimate import estimate_stream
    from streamer.tools.cost.report_text import format_report
    from streamer.tools.cost.sample_inputs import read_samples

    plan = make_plan(config, level="OFF")
    sample = read_samples(plan, own.samples, own.limit)
    report = estimate_stream(plan, sample, own.rate, own.backlog)
    text = "\n".join(format_report(report))
    click.echo("\n" + Redaction(config.secrets).redact_text(text))
    return 0


def explain_command(config: Config, options: Options) -> int:
    """Print the plan of a config.

    Raises:
        StreamerError: the config asks for something that cannot be run.
    """
    # Not before: what is wrong with the config shows at once.
    from streamer.cli.run_stream import choose_checkpoint
    from streamer.plan import make_plan
    from streamer.plan.explain import explain

    text = explain(make_plan(config), choose_checkpoint(config, options))
    click.echo(Redaction(config.secrets).redact_text(text))
    return 0
