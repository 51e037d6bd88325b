"""`streamer state`: windows open after an earlier micro-batch, their changes, and a copy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from streamer.cli.completion.values import FILE
from streamer.cli.options import Options, merge_options, open_config, parse_options, stream_options
from streamer.cli.redact_output import redact_document
from streamer.cli.stopped_checkpoint import open_stopped_checkpoint
from streamer.cli.text_table import print_table, shorten_times
from streamer.core.errors import StreamerError

if TYPE_CHECKING:
    from streamer.config import Config
    from streamer.plan import Plan
    from streamer.spark.checkpoint.checkpoint import Checkpoint

Session = Callable[[], Any]
Opened = tuple["Config", "Plan", "Checkpoint", Session]

SHOWN_COLUMNS: Final = ("buffer", "key", "side", "start", "end", "messages", "closes")
"""The columns of a listing as text."""
_CAPTURE_FILE: Final = "captured.jsonl"

_batch_option = click.option(
    "--micro-batch", "batch", type=click.IntRange(0), help="After this micro-batch (the newest)."
)
_key_option = click.option("--key", help="Only windows of this key.")
_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON object for each window."
)


@click.group("state")
def state_cli() -> None:
    """Inspect the windows of a stopped stream after earlier micro-batches.

    The checkpoint keeps the states of the last 20 micro-batches or so. All commands but `start`
    change nothing; `start` makes a new checkpoint out of an earlier state.
    """


@state_cli.command("batches")
@click.argument("file", required=False, type=FILE)
@stream_options
@click.pass_obj
def batches_cli(root: Options, /, file: str | None, **given: Any) -> int:
    """List the micro-batches whose states are in the checkpoint."""
    with _open(root, given, file) as (_, plan, checkpoint, _session):
        from streamer.core.timestamps import format_rfc3339
        from streamer.spark.checkpoint.state_history import list_batch_times

        rows = [
            (f"{batch:,}", shorten_times(format_rfc3339(time)))
            for batch, time in list_batch_times(checkpoint)
        ]
    print_table(("MICRO-BATCH", "TIME"), rows)
    return 0


@state_cli.command("list")
@click.argument("file", required=False, type=FILE)
@_batch_option
@_key_option
@click.option("--limit", type=click.IntRange(1), default=50, help="How many windows (50).")
@_json_option
@stream_options
@click.pass_obj
def list_cli(
    root: Options,
    /,
    file: str | None,
    batch: int | None,
    key: str | None,
    limit: int,
    as_json: bool,
    **given: Any,
) -> int:
    """List the windows that were open after a micro-batch."""
    with _open(root, given, file) as (config, plan, checkpoint, session):
        listed = redact_document(config, _list_windows(plan, checkpoint, session, batch, key))
    if as_json:
        for one in listed:
            click.echo(json.dumps(one, ensure_ascii=False))
        return 0
    print_rows(listed[:limit], SHOWN_COLUMNS)
    if len(listed) > limit:
        click.echo(f"and {len(listed) - limit:,} more (--limit)")
    return 0


@state_cli.command("diff")
@click.argument("file", required=False, type=FILE)
@click.option("--from", "since", type=click.IntRange(0), required=True, help="A micro-batch.")
@click.option("--to", "until", type=click.IntRange(0), help="A later one (the newest).")
@_key_option
@_json_option
@stream_options
@click.pass_obj
def diff_cli(
    root: Options,
    /,
    file: str | None,
    since: int,
    until: int | None,
    key: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Show the windows that differ between two micro-batches: opened, closed or changed."""
    from streamer.service.monitoring.state_windows import diff_windows

    with _open(root, given, file) as (config, plan, checkpoint, session):
        before = _list_windows(plan, checkpoint, session, since, key)
        after = _list_windows(plan, checkpoint, session, until, key)
        changes = redact_document(config, diff_windows(before, after))
    if as_json:
        for one in changes:
            click.echo(json.dumps(one, ensure_ascii=False))
        return 0
    rows = [{**one, "fields": _describe_fields(one)} for one in changes]
    print_rows(rows, ("change", "buffer", "key", "side", "start", "fields"))
    return 0


@state_cli.command("export")
@click.argument("file", required=False, type=FILE)
@_batch_option
@_key_option
@click.option("-o", "--output", "out", required=True, metavar="FILE", help="A Parquet file.")
@stream_options
@click.pass_obj
def export_cli(
    root: Options,
    /,
    file: str | None,
    batch: int | None,
    key: str | None,
    out: str,
    **given: Any,
) -> int:
    """Write the windows that were open after a micro-batch to a Parquet file."""
    from streamer.service.monitoring.state_windows import write_parquet

    with _open(root, given, file) as (config, plan, checkpoint, session):
        from streamer.spark.checkpoint.state_history import find_batch

        number = checkpoint.global_batch_number(find_batch(checkpoint, batch))
        listed = redact_document(config, _list_windows(plan, checkpoint, session, batch, key))
    try:
        write_parquet(out, number, listed)
    except OSError as e:
        raise StreamerError(f"{out} cannot be written: {e}") from None
    click.echo(f"{out}: {len(listed):,} windows after micro-batch {number:,}")
    return 0


@state_cli.command("start")
@click.argument("file", required=False, type=FILE)
@_batch_option
@click.option("--to", "target", required=True, metavar="DIR", help="The new checkpoint directory.")
@click.option(
    "--outputs",
    type=click.Choice(["captured", "config"]),
    default="captured",
    help=f"Write results to {_CAPTURE_FILE} in the new directory (captured), or to the outputs "
    "of the config, changed by --set.",
)
@click.option("--no-run", is_flag=True, help="Only make the checkpoint.")
@stream_options
@click.pass_obj
def start_cli(
    root: Options,
    /,
    file: str | None,
    batch: int | None,
    target: str,
    outputs: str,
    no_run: bool,
    **given: Any,
) -> int:
    """Start a copy of the stream from an earlier micro-batch, on a new checkpoint.

    The copy reads on from there, with the windows that were open then. The checkpoint of the
    stream is not changed, nor is its group of Kafka; its HTTP server is not started.
    """
    from streamer.spark.checkpoint.state_history import (
        copy_state,
        delete_unfinished_copy,
        find_batch,
        is_unfinished_copy,
    )

    options = merge_options(root, parse_options(**given), file, "state start")
    directory = Path(target)
    if any(_entries(directory)) and not is_unfinished_copy(directory):
        raise StreamerError(f"--to {target} is not empty: name a new directory")
    with _open(root, given, file) as (config, plan, checkpoint, session):
        from streamer.spark.checkpoint.checkpoint import Checkpoint

        sets = list_sets_of_copy(plan, directory, outputs)
        find_batch(checkpoint, batch)  # before the directory is made
        copy = Checkpoint(directory)
        try:
            delete_unfinished_copy(copy)
            number = copy_state(session, checkpoint, plan, batch, copy)
        finally:
            copy.close()
        shown = str(checkpoint)
    click.echo(f"{target}: goes on behind micro-batch {number:,} of {shown}", err=True)
    if no_run:
        return 0
    from streamer.cli.run_stream import run_command

    options = replace(options, sets=(*options.sets, *sets), checkpoint=target)
    with open_config(options, lambda _: None) as config:
        return run_command(config, options)


def _entries(directory: Path) -> Iterator[Path]:
    """Give what is in a directory; nothing where it is not there."""
    if directory.is_dir():
        yield from directory.iterdir()


def list_sets_of_copy(plan: Plan, directory: Path, outputs: str) -> list[str]:
    """Return the `--set` expressions by which a copy leaves alone what belongs to the original."""
    sets = ["http.enabled=false"]
    if outputs == "captured":
        if len(plan.outputs) > 1 or plan.buffers:
            raise StreamerError(
                "the config has several outputs, which are not captured: name others by --set, "
                "with --outputs config"
            )
        path = str((directory / _CAPTURE_FILE).absolute())
        sets.append(f"output={json.dumps({'file': {'path': path}})}")
    return [*sets, *_rename_groups(plan)]


def _rename_groups(plan: Plan) -> Iterator[str]:
    """Give the `--set` expressions of other consumer groups for all inputs that have one."""
    from streamer.sdk.spec.children import walk_components

    for one in walk_components([plan.input]):
        config = one.config
        group = config.get("consumer_group") if hasattr(config, "get") else None
        if group:
            yield f"{one.path}.{one.name}.consumer_group={group}-copy-{os.getpid()}"


@contextmanager
def _open(root: Options, given: Mapping[str, Any], file: str | None) -> Iterator[Opened]:
    """Give the config, its plan, its checkpoint, which must not be in use, and Spark's start."""
    from streamer.cli.run_stream import choose_checkpoint
    from streamer.plan import make_plan
    from streamer.plan.checkpoint_dir import is_remote

    options = merge_options(root, parse_options(**given), file, "state")
    with open_config(options) as config:
        plan = make_plan(config, level="OFF")
        if plan.window is None:
            raise StreamerError(f"the config has no windows ({plan.buffer.name}), and so no state")
        named = choose_checkpoint(config, options)
        local = named.removeprefix("file://")
        if not is_remote(named) and not Path(local).is_dir():
            raise StreamerError(f"there is no checkpoint {local}: start the stream once")
        with open_stopped_checkpoint(config, plan, named, "state") as (checkpoint, session):
            yield config, plan, checkpoint, session


def _list_windows(
    plan: Plan, checkpoint: Checkpoint, session: Session, batch: int | None, key: str | None
) -> list[dict[str, Any]]:
    """Return the windows that were open after a micro-batch."""
    from streamer.service.monitoring.state_windows import list_state_windows
    from streamer.spark.checkpoint.state_history import open_state

    with open_state(session, checkpoint, plan, batch) as stores:
        return list_state_windows(plan, stores, key)


def print_rows(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Print the columns of rows that are not empty."""
    if not rows:
        click.echo("none", err=True)
        return
    used = [name for name in names if any(row[name] not in (None, "") for row in rows)]
    cells = [[_show(row[name]) for name in used] for row in rows]
    print_table([name.upper() for name in used], cells)


def _describe_fields(change: Mapping[str, Any]) -> str:
    """Return what differs; of a window that is in one state only, its messages say enough."""
    texts = (
        f"{name} {_show(old) or '–'} → {_show(new) or '–'}"
        for name, (old, new) in change["fields"].items()
        if change["change"] == "changed" or name == "messages"
    )
    return "; ".join(texts)


def _show(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else shorten_times(str(value))
