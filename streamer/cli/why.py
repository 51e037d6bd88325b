"""`streamer why`: who holds the clock of windows back, and what became of a window or a message."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from streamer.cli.completion.values import FILE
from streamer.cli.options import (
    Options,
    gather_options,
    merge_options,
    open_config,
    parse_options,
    stream_options,
)
from streamer.cli.redact_output import redact_document
from streamer.cli.service_client import ServiceClient, build_stream_path, remote_options
from streamer.cli.text_table import shorten_times
from streamer.config import Config
from streamer.core.errors import StreamerError
from streamer.core.log_format import escape_controls

_HELP: Final = """\
Say who holds the clock of windows back, why a window is open, and why a message was dropped.

A stream with windows keeps a bounded journal of its decisions in its checkpoint. CONFIG is the
config of the stream, which may run; with --stream, a service is asked for its stream.

\b
  streamer why config.yaml                                   the clock, and who holds it back
  streamer why config.yaml --window 2026-11-21T10:00:00Z     windows that begin or end then
  streamer why config.yaml --message '{"light":"a"'          a message, by a part of it
  streamer why config.yaml --at 2026-11-21T10:00:08Z         a message, by its event time
  streamer why --stream orders --url http://127.0.0.1:4195 --key '"alice"'
"""


@dataclass(frozen=True)
class WhyOptions:
    """The options of the command itself."""

    window: str | None
    key: str | None
    at: str | None
    message: str | None
    form: str
    stream: str | None
    url: str
    token: str | None
    user: str | None

    @property
    def conditions(self) -> dict[str, str]:
        """The conditions, by the names of the API's parameters."""
        named = {"window": self.window, "key": self.key, "at": self.at, "message": self.message}
        return {name: value for name, value in named.items() if value is not None}


@click.command("why", help=_HELP)
@click.argument("file", metavar="[CONFIG]", required=False, type=FILE)
@click.option("--window", metavar="TIME", help="Windows that begin or end then (RFC 3339).")
@click.option("--key", metavar="KEY", help="Windows or messages of this key, as it is shown.")
@click.option("--at", metavar="TIME", help="Messages of this event time (RFC 3339).")
@click.option("--message", metavar="TEXT", help="Messages that contain this text, or are it.")
@click.option("--json", "form", flag_value="json", help="Print the answer as JSON.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", hidden=True)
@click.option("--stream", metavar="ID", help="The stream of a service; see --url.")
@remote_options
@stream_options
@click.pass_obj
@gather_options(WhyOptions)
def why_cli(root: Options, own: WhyOptions, /, file: str | None, **given: Any) -> int:
    """Show the decisions of windows."""
    if own.stream is not None:
        if file is not None:
            raise click.UsageError("why needs a config or --stream, not both")
        service = ServiceClient(own.url, own.token, own.user)
        path = build_stream_path(own.stream, "why")
        _show(service.request("GET", path, query=own.conditions), own)
        return 0
    options = merge_options(root, parse_options(**given), file, "why")
    with open_config(options) as config:
        answer = _answer_locally(config, options, own)
        answer = redact_document(config, answer)
    _show(answer, own)
    return 0


def _answer_locally(config: Config, options: Options, own: WhyOptions) -> dict[str, Any]:
    """Answer from the journal in the checkpoint of a config."""
    from streamer.engine.driver.decision_journal import DIRECTORY_NAME, read_decisions
    from streamer.plan import make_plan
    from streamer.plan.checkpoint_dir import choose_checkpoint, is_remote, local_directory
    from streamer.service.monitoring.decision_answers import (
        DecisionQuery,
        answer_query,
        windows_by_label,
    )

    plan = make_plan(config, "OFF")
    if plan.window is None:
        raise StreamerError(
            f"the config has no windows ({plan.buffer.name}), and so no clock that waits; "
            "`streamer tap` shows its messages behind each processor"
        )
    checkpoint = choose_checkpoint(config, options.checkpoint, os.environ)
    directory = Path(checkpoint.removeprefix("file://"))
    if is_remote(checkpoint):
        directory = local_directory(checkpoint, os.environ)
    if not (directory / DIRECTORY_NAME).is_dir():
        raise StreamerError(
            f"there is no journal of decisions in {directory}: start the stream, or name its "
            "checkpoint with --checkpoint"
        )
    query = DecisionQuery(
        bound=_parse_time("--window", own.window),
        key=own.key,
        at=_parse_time("--at", own.at),
        text=own.message,
    )
    records = [*read_decisions(directory)]
    answer = answer_query(records, windows_by_label(plan), query)
    if own.message is not None and own.at is None and not answer["messages"]:
        at = _read_event_time(plan, own.message)
        if at is not None:
            query = DecisionQuery(key=own.key, at=at, text=own.message)
            answer = answer_query(records, windows_by_label(plan), query)
    return answer


def _read_event_time(plan: Any, text: str) -> int | None:
    """Return the event time that the config gives a message, ns; None where it gives none."""
    import time

    from streamer.core.message import Message
    from streamer.engine.offline.window_simulator import EventTimeReader

    return EventTimeReader(plan).read(Message(text.encode()), time.time_ns())


def _parse_time(option: str, text: str | None) -> int | None:
    from streamer.core.timestamps import parse_event_time

    if text is None:
        return None
    try:
        return parse_event_time(text)
    except ValueError as e:
        raise StreamerError(f"{option} {text}: {e}") from None


def _show(answer: Mapping[str, Any], own: WhyOptions) -> None:
    if own.form == "json":
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    for line in _format_answer(answer, own):
        click.echo(escape_controls(shorten_times(line)))


def _format_answer(answer: Mapping[str, Any], own: WhyOptions) -> Iterator[str]:
    journal = answer["journal"]
    if not journal["micro_batches"]:
        yield "the journal has no micro-batch yet"
        return
    yield (
        f"journal: {journal['micro_batches']:,} micro-batches, "
        f"{journal['first_micro_batch']:,} ({journal['first']}) to "
        f"{journal['last_micro_batch']:,} ({journal['last']})"
    )
    for clock in answer["clocks"]:
        yield from _format_clock(clock)
    for one in answer.get("messages", ()):
        yield ""
        yield from _format_message(one)
    if "messages" in answer and not answer["messages"]:
        yield ""
        yield "no sample of a dropped message matches; of each micro-batch only the first are kept"
        if answer.get("windows"):
            yield "the windows that a message of this event time belongs to:"
    for one in answer.get("windows", ()):
        yield ""
        yield from _format_window(one)
    if own.window is not None and not answer.get("windows"):
        yield ""
        yield "no window with this bound is open or in the journal"


def _name_buffer(one: Mapping[str, Any]) -> str:
    return f"{one['buffer']}: " if one["buffer"] else ""


def _format_clock(clock: Mapping[str, Any]) -> Iterator[str]:
    name = _name_buffer(clock)
    if clock["clock"] is None:
        yield f"{name}clock: no event has moved it yet"
        return
    by = "event time" if clock["by"] == "event_time" else "time of day"
    yield (
        f"{name}clock: {clock['clock']} ({by}), since micro-batch {clock['moved_in']:,} "
        f"({clock['moved_at']})"
    )
    yield f"{name}windows hold {clock['messages']:,} messages, {clock['bytes']:,} bytes"
    held = clock["held_by"]
    if held is None:
        return
    at_least = "" if held["complete"] else "at least "
    kind = "" if held["kind"] == "source" else "key "
    file = f", file {held['file']}" if held["file"] else ""
    yield f"{name}held back by {kind}{held['name']}{file}, since {held['since']}"
    if held["kind"] == "source":
        newest = held["event_time"] or "no message yet"
        yield f"  its newest event time: {newest}; others are {held['ahead_seconds']:,} s ahead"
    size = "" if held["bytes"] is None else f", {held['bytes']:,} bytes"
    yield (
        f"  windows that wait for it: {at_least}{held['windows']:,}, with "
        f"{held['messages']:,} messages{size}"
    )
    if clock["hint"]:
        yield f"  {clock['hint']}"


def _format_message(one: Mapping[str, Any]) -> Iterator[str]:
    yield f"{_name_buffer(one)}message {one['payload']}"
    yield f"  dropped ({one['reason']}) in micro-batch {one['micro_batch']:,} ({one['at']})"
    rows = (
        ("key", one["key"]),
        ("from", one["source"]),
        ("event time", one["event_time"]),
        ("clock before it", one["clock_before"]),
        ("its last window ended at", one["window_end"]),
    )
    for name, value in rows:
        if value is not None:
            yield f"  {name}: {value}"
    yield f"  rule: {one['rule']}"
    if one["closed_in"] is not None:
        yield f"  the clock came there in micro-batch {one['closed_in']:,}"
    if one["remedy"]:
        yield f"  remedy: {one['remedy']}"


def _format_window(one: Mapping[str, Any]) -> Iterator[str]:
    bounds = f"{one['start'] or '–'} to {one['end'] or '–'}"
    key = "" if one["key"] is None else f", key {one['key']}"
    count = "" if one["messages"] is None else f", {one['messages']:,} messages"
    yield f"{_name_buffer(one)}window {bounds}{key}{count}"
    if one["state"] == "closed":
        reason = f" ({one['reason']})" if one["reason"] else ""
        yield f"  closed{reason} in micro-batch {one['micro_batch']:,} ({one['at']})"
    elif one["state"] == "open":
        closes = f"; it closes at {one['closes']}" if one["closes"] else ""
        yield f"  not closed{closes}"
    else:
        yield "  not emitted"
    if one["clock"] is not None:
        before = one.get("clock_before")
        moved = "" if before is None else f", {before} before"
        yield f"  clock: {one['clock']}{moved}"
    yield f"  why: {one['why']}"
