"""`streamer kafka-offsets`: the positions of a stopped stream in Kafka, shown, reset and copied."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from streamer.cli.completion.values import DIRECTORY, complete_config
from streamer.cli.offset_options import OffsetOptions
from streamer.cli.options import (
    Options,
    gather_options,
    merge_options,
    open_config,
    parse_options,
    stream_options,
)
from streamer.cli.text_table import print_table
from streamer.core.errors import StreamerError
from streamer.core.timestamps import format_unix_seconds
from streamer.plan.checkpoint_dir import is_remote

if TYPE_CHECKING:
    from streamer.cli.kafka_partitions import PositionedInput
    from streamer.connectors.kafka.input.offset_moves import OffsetMove
    from streamer.plan import Plan

_HELP: Final = """\
Show, reset or copy the positions of a stopped stream in its Kafka topics.

Without an option that changes something, it lists each partition: the position is the offset of the
next message. With one it says what would change, and --apply does it, which drops open windows.

\b
  streamer kafka-offsets config.yaml
  streamer kafka-offsets config.yaml --to-datetime 2026-11-26T08:00:00Z
  streamer kafka-offsets config.yaml --topic orders:0 --to-offset 1200 --apply
  streamer kafka-offsets config.yaml --to-group totals --apply
"""
_NO_VALUE: Final = "–"


@click.command("kafka-offsets", help=_HELP, short_help="Show or move a stream's Kafka offsets.")
@click.argument("file", required=False, shell_complete=complete_config)
@click.option("--to-earliest", is_flag=True, help="Move to the oldest messages.")
@click.option("--to-latest", is_flag=True, help="Move to the ends: skip all that waits.")
@click.option(
    "--to-datetime",
    metavar="TIME",
    help="Move to the first messages of a time (RFC 3339, Unix ms).",
)
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="Move to an offset.")
@click.option("--shift-by", type=int, metavar="N", help="Move on by N messages; back if negative.")
@click.option("--from-group", metavar="GROUP", help="Take the offsets of a consumer group.")
@click.option(
    "--from-checkpoint", type=DIRECTORY, metavar="DIR", help="Take the positions of another stream."
)
@click.option("--to-group", metavar="GROUP", help="Commit the positions to a consumer group.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:N,…]",
    help="Only these topics or partitions; may be repeated.",
)
@click.option(
    "--apply/--dry-run", "applies", default=False, help="Change it, or say what would (default)."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each partition.")
@stream_options
@click.pass_obj
@gather_options(OffsetOptions)
def kafka_offsets_cli(root: Options, own: OffsetOptions, /, file: str | None, **given: Any) -> int:
    """Run the command."""
    if len(own.actions) > 1:
        raise click.UsageError(f"{own.actions[1]} does not go with {own.actions[0]}; choose one")
    if own.applies and not own.actions:
        raise click.UsageError("--apply needs an option that changes something, as --to-earliest")
    options = merge_options(root, parse_options(**given), file, "kafka-offsets")
    with open_config(options) as config:
        return _run(config, options, own)


def _run(config: Any, options: Options, own: OffsetOptions) -> int:
    from streamer.cli.run_stream import choose_checkpoint
    from streamer.plan import make_plan

    plan = make_plan(config, level="OFF")
    named = choose_checkpoint(config, options)
    if not is_remote(named) and not Path(named.removeprefix("file://")).is_dir():
        raise StreamerError(
            f"there is no checkpoint {named}: the stream has not run; start_offset in the config "
            "says where its first start begins"
        )
    # Imported here: Spark's Python takes a second, and the config may have been wrong.
    from streamer.cli.kafka_partitions import choose_offsets, open_inputs, place_inputs
    from streamer.cli.stopped_checkpoint import open_stopped_checkpoint
    from streamer.connectors.kafka.input.offset_moves import (
        check_selectors,
        plan_moves,
        select_places,
    )
    from streamer.spark.checkpoint.kafka_positions import (
        read_kafka_positions,
        write_kafka_positions,
    )
    from streamer.spark.checkpoint.unfinished_batch import check_finished

    with (
        open_inputs(plan) as inputs,
        open_stopped_checkpoint(config, plan, named, "kafka-offsets") as (checkpoint, _),
    ):
        checkpoint.check_fingerprint(plan.fingerprint)
        names = [one.name for one in inputs]
        positioned = place_inputs(inputs, read_kafka_positions(checkpoint, names))
        check_selectors({place for one in positioned for place in one.states}, own.topics)
        if not own.actions:
            _show_positions(positioned, own)
            return 0
        moves: list[list[OffsetMove]] = []
        for one in positioned:
            places = select_places(one.states, own.topics)
            if own.to_group is not None:
                _commit_to_group(one, places, own)
                continue
            targets = choose_offsets(one, places, own, plan)
            moves.append(plan_moves(one.states, targets))
        if own.to_group is not None:
            return 0
        _show_moves(positioned, moves, own)
        if not own.applies:
            _print_note(
                f"Nothing is changed. {_windows_note(plan, checkpoint.directory)}--apply does it."
            )
            return 0
        after = [one.moved(of_input) for one, of_input in zip(positioned, moves, strict=True)]
        check_finished(checkpoint, plan, "move its offsets")
        write_kafka_positions(checkpoint, names, after, [one.identities for one in positioned])
        _forget_figures(checkpoint.directory)
        _print_note(f"{checkpoint}: the next start reads on from there")
    return 0


def _show_positions(positioned: Sequence[PositionedInput], own: OffsetOptions) -> None:
    from streamer.connectors.kafka.input.message_times import read_message_times
    from streamer.connectors.kafka.input.offset_moves import select_places
    from streamer.connectors.kafka.input.partition_fetcher import PartitionRange

    rows = []
    for one in positioned:
        places = select_places(one.states, own.topics)
        waiting = [
            PartitionRange(*place, max(state.offset, state.first), state.last)
            for place in places
            if (state := one.states[place]).lag
        ]
        times = read_message_times(one.input.connection, waiting) if waiting else {}
        for place in places:
            state, ms = one.states[place], times.get(place)
            rows.append(
                {
                    "input": one.name.strip("/"),
                    "topic": place[0],
                    "partition": place[1],
                    "position": state.offset,
                    "first": state.first,
                    "last": state.last,
                    "lag": state.lag,
                    "time": None if ms is None else format_unix_seconds(ms / 1000),
                }
            )
    _print_rows(rows, own.as_json, len(positioned) > 1)


def _show_moves(
    positioned: Sequence[PositionedInput], moves: Sequence[Sequence[OffsetMove]], own: OffsetOptions
) -> None:
    rows = [
        {
            "input": one.name.strip("/"),
            "topic": move.place[0],
            "partition": move.place[1],
            "position": move.before,
            "new": move.after,
            "messages": move.effect,
        }
        for one, of_input in zip(positioned, moves, strict=True)
        for move in of_input
    ]
    _print_rows(rows, own.as_json, len(positioned) > 1)


def _print_rows(rows: Sequence[Mapping[str, Any]], as_json: bool, has_inputs: bool) -> None:
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
        return
    if not rows:
        _print_note("no partitions")
        return
    names = [name for name in rows[0] if has_inputs or name != "input"]
    cells = [[_NO_VALUE if row[name] is None else str(row[name]) for name in names] for row in rows]
    print_table(names, cells)


def _commit_to_group(
    one: PositionedInput, places: Sequence[tuple[str, int]], own: OffsetOptions
) -> None:
    assert own.to_group is not None
    offsets = {place: max(one.states[place].offset, 0) for place in places}
    if not own.applies:
        _print_note(
            f"{len(offsets)} partitions would be committed to the group {own.to_group!r}; "
            "--apply does it"
        )
        return
    failed = one.cluster.commit(own.to_group, offsets, one.input.connection.answer_timeout_s)
    if failed is not None:
        raise StreamerError(failed)
    _print_note(f"{len(offsets)} partitions are committed to the group {own.to_group!r}")


def _windows_note(plan: Plan, directory: Path) -> str:
    """Return what becomes of open windows; empty where there are none."""
    if plan.window is None:
        return ""
    from streamer.service.monitoring.earlier_figures import FiguresFile

    figures = FiguresFile(directory).load()
    if figures.open_windows == 0:
        return "No windows are open. "
    number = "the" if figures.open_windows is None else f"{figures.open_windows:,}"
    held = "" if figures.held is None else f" with {figures.held:,} messages"
    return f"Windows start again: {number} open ones{held} are dropped. "


def _forget_figures(directory: Path) -> None:
    from streamer.service.monitoring.earlier_figures import FiguresFile

    FiguresFile(directory).delete()


def _print_note(text: str) -> None:
    click.echo(text, err=True)
