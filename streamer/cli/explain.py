"""`streamer explain -c config.yaml`: what would run where, without starting anything."""

from __future__ import annotations

import click

from streamer.cli.options import Options
from streamer.cli.run_stream import choose_checkpoint
from streamer.config import Config
from streamer.core.redaction import Redaction
from streamer.plan import make_plan
from streamer.plan.explain import explain


def explain_command(config: Config, options: Options) -> int:
    """Print the plan of a config.

    Raises:
        StreamerError: the config asks for something that cannot be run.
    """
    text = explain(make_plan(config), choose_checkpoint(config, options))
    click.echo(Redaction(config.secrets).redact_text(text))
    return 0
