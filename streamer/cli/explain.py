"""`streamer explain -c config.yaml`: what would run where, without starting anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamer.cli.completion.values import complete_config
from streamer.cli.options import Options, merge_options, open_config, parse_options, stream_options
from streamer.core.redaction import Redaction

if TYPE_CHECKING:
    from streamer.config import Config


@click.command("explain", short_help="Show how a config would run.")
@click.argument("file", required=False, shell_complete=complete_config)
@stream_options
@click.pass_obj
def explain_cli(root: Options, /, file: str | None, **given: Any) -> int:
    """Show the plan of a config: its stages, shards and windows, and where processors run.

    Nothing is read or written, and Spark is not started.
    """
    options = merge_options(root, parse_options(**given), file, "explain")
    with open_config(options) as config:
        return explain_command(config, options)


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
