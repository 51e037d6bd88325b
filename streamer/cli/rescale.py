"""`streamer rescale`: another number of shards for the windows of a stream that does not run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from streamer.cli.completion.values import complete_config
from streamer.cli.options import Options, merge_options, open_config, parse_options, stream_options
from streamer.config import Config
from streamer.core.errors import StreamerError
from streamer.plan import Plan
from streamer.plan.checkpoint_dir import is_remote

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import Checkpoint

_LOCAL_SETTINGS: Final = ("spark.driver.",)
_REMOTE_SETTINGS: Final = ("spark.driver.", "spark.hadoop.", "spark.jars")
"""Settings that reading and writing a checkpoint takes, wherever the stream runs."""


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

    with _open_checkpoint(config, plan, named) as (checkpoint, session):
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


@contextmanager
def _open_checkpoint(
    config: Config, plan: Plan, named: str
) -> Iterator[tuple[Checkpoint, Callable[[], Any]]]:
    """Take a checkpoint, and give what starts Spark if that is needed.

    Raises:
        StreamerError: it is in use, or cannot be reached.
    """
    from streamer.plan.plan import count_cores
    from streamer.spark.checkpoint.checkpoint import Checkpoint
    from streamer.spark.checkpoint.remote_checkpoint import file_manager_settings, start_and_acquire
    from streamer.spark.jars.kafka_jars import with_s3_jars
    from streamer.spark.session.session_start import start_session

    sessions: list[Any] = []

    def start(lock: int) -> Any:
        if not sessions:
            # What is read is read here, wherever the stream runs.
            given: Mapping[str, str] = {
                key: str(value)
                for key, value in config.spark["conf"].items()
                if key.startswith(_REMOTE_SETTINGS if is_remote(named) else _LOCAL_SETTINGS)
            }
            given = with_s3_jars(
                given, os.environ, _ignore_log, config.spark["jars_directory"], named
            )
            conf = {**(file_manager_settings(named) if is_remote(named) else {}), **given}
            name = f"streamer rescale {plan.name}"
            master = f"local[{count_cores('')}]"
            sessions.append(start_session(name, master, conf, _ignore_log, "OFF", (lock,)))
        return sessions[0]

    with ExitStack() as open_:
        open_.callback(lambda: [one.stop() for one in sessions])
        if is_remote(named):
            checkpoint = Checkpoint(
                start_and_acquire(named, os.environ, start, _ignore_log, only_if_last_here=True)[0]
            )
        else:
            checkpoint = Checkpoint(named, wait=0.0)
        # Spark, which reaches it, ends after that.
        open_.callback(checkpoint.close)
        yield checkpoint, lambda: start(checkpoint.lock)


def _ignore_log(*_: Any) -> None:
    """Take a log line."""
