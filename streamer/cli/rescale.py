"""`streamer rescale`: another number of shards for the windows of a stream that does not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streamer.cli.completion.values import complete_config
from streamer.cli.options import Options, merge_options, open_config, parse_options, stream_options
from streamer.cli.stopped_checkpoint import open_stopped_checkpoint
from streamer.config import Config
from streamer.core.errors import StreamerError
from streamer.plan.checkpoint_dir import is_remote


@click.command("rescale", short_help="Change the number of shards of a stopped stream.")
@click.argument("file", required=False, shell_complete=complete_config)
@click.option(
    "--shards",
    type=click.IntRange(1, 4096),
    required=True,
    metavar="N",
    help="How many shards the windows are to have.",
)
@stream_options
@click.pass_obj
def rescale_cli(root: Options, /, file: str | None, shards: int, **given: Any) -> int:
    """Change the number of shards of a stream, which must not run.

    Open windows, positions and counters go on: nothing is lost, and nothing comes twice. Either it
    is done as a whole, or the checkpoint stays as it was.
    """
    options = merge_options(root, parse_options(**given), file, "rescale")
    with open_config(options) as config:
        return _rescale(config, options, shards)


def _rescale(config: Config, options: Options, shards: int) -> int:
    from streamer.cli.run_stream import choose_checkpoint
    from streamer.plan import make_plan

    plan = make_plan(config, level="OFF")
    named = choose_checkpoint(config, options)
    local = named.removeprefix("file://")
    if not is_remote(named) and not Path(local).is_dir():
        raise StreamerError(
            f"there is no checkpoint {local}: set spark.shards in the config for the first start"
        )
    # Imported here: Spark's Python takes a second, and the config may have been wrong.
    from streamer.spark.checkpoint.relocation import update_moved_paths
    from streamer.spark.checkpoint.rescaling import current_shards, rescale_checkpoint

    with open_stopped_checkpoint(config, plan, named, "rescale") as (checkpoint, session):
        update_moved_paths(checkpoint.spark)
        before = current_shards(plan, checkpoint)
        if before == shards:
            click.echo(f"{checkpoint}: has {shards} shards already; nothing to do")
            return 0
        done = rescale_checkpoint(plan, checkpoint, shards, session)
    what = "slices of open windows" if done.moved.sliced else "open windows"
    click.echo(
        f"{checkpoint}: {done.shards_before} shards are now {done.shards_after}; "
        f"{what}: {done.moved.windows}, messages in them: {done.moved.messages}; "
        f"{done.seconds:.1f} s"
    )
    click.echo(
        f"The former state stays in {done.former_state} until the stream has run and starts again"
    )
    return 0
