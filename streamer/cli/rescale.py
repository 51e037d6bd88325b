"""`streamer rescale`: another number of shards for the windows of a stream that does not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streamer.cli.opened import merged, opened
from streamer.cli.options import Options, options_of, stream_options
from streamer.config import Config
from streamer.errors import StreamerError
from streamer.plan.place import is_remote


@click.command("rescale", short_help="Change the number of shards of a stopped stream.")
@click.argument("file", required=False)
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
    options = merged(root, options_of(**given), file, "rescale")
    with opened(options) as config:
        return _rescale(config, options, shards)


def _rescale(config: Config, options: Options, shards: int) -> int:
    from streamer.cli.run import checkpoint_of
    from streamer.plan import make_plan

    plan = make_plan(config, level="OFF")
    directory = checkpoint_of(config, options)
    local = directory.removeprefix("file://")
    if is_remote(directory):
        raise StreamerError(
            f"the checkpoint is {directory}: shards can be changed in a directory of this machine "
            "only; let open windows out by `streamer -w --on-reset drain` and a change of the "
            "windows, or start with another checkpoint and spark.shards"
        )
    if not Path(local).is_dir():
        raise StreamerError(
            f"there is no checkpoint {local}: set spark.shards in the config, and the first start "
            "has so many"
        )
    # Imported here: Spark's Python takes a second, and the config may have been wrong.
    from streamer.plan.plan import cores
    from streamer.spark.checkpoint import Checkpoint
    from streamer.spark.rescaling import rescale_checkpoint, shards_of
    from streamer.spark.session import start_session

    checkpoint = Checkpoint(directory, wait=0.0)
    try:
        before = shards_of(plan, checkpoint)
        if before == shards:
            click.echo(f"{checkpoint.directory}: has {shards} shards already; nothing to do")
            return 0
        sessions = []

        def session() -> Any:
            # What is read is on this machine, wherever the stream runs.
            master = f"local[{min(before, cores(''))}]"
            name = f"streamer rescale {plan.name}"
            conf = {
                key: str(value)
                for key, value in config.spark["conf"].items()
                if key.startswith("spark.driver.")
            }
            lock = (checkpoint.lock,)
            sessions.append(start_session(name, master, conf, lambda *_: None, "OFF", lock))
            return sessions[-1]

        try:
            done = rescale_checkpoint(plan, checkpoint, shards, session)
        finally:
            for one in sessions:
                one.stop()
    finally:
        checkpoint.close()
    what = "slices of open windows" if done.moved.sliced else "open windows"
    click.echo(
        f"{checkpoint.directory}: {done.before} shards are now {done.after}; "
        f"{what}: {done.moved.windows}, messages in them: {done.moved.messages}; "
        f"{done.seconds:.1f} s"
    )
    click.echo(f"The former state stays in {done.former} until the stream has run and starts again")
    return 0
