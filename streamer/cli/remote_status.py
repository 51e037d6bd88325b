"""`streamer list-streams` and `logs`: what the streams of a service do."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import click

from streamer.cli.completion.values import complete_stream
from streamer.cli.service_client import ServiceClient, build_stream_path, remote_options
from streamer.cli.text_table import print_table, shorten_times
from streamer.core.durations import SECOND, format_duration
from streamer.core.log_format import escape_controls

_POLL_INTERVAL_S: Final = 1.0
_FORMAT_OPTION = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="The format."
)


@click.command("list-streams", short_help="List the streams of a service.")
@_FORMAT_OPTION
@remote_options
def list_streams_cli(form: str, **service: Any) -> int:
    """List the streams of a service with what they do."""
    streams = ServiceClient(**service).request("GET", "/streams")
    if form == "json":
        click.echo(json.dumps(streams, indent=2))
        return 0
    rows = [
        (
            *(name, _name_condition(one), _format_seconds(one["uptime"])),
            *(_format_count(one["messages"]), _format_rate(one, "in"), _format_rate(one, "out")),
            *(_format_lag(one), _format_count(one["open_windows"])),
            *(str(one["revision"]), one["source"]),
        )
        for name, one in streams.items()
    ]
    flow = ("MESSAGES", "IN/S", "OUT/S", "LAG")
    print_table(("ID", "STATE", "UPTIME", *flow, "WINDOWS", "REVISION", "SOURCE"), rows)
    for name, one in streams.items():
        for line in describe_stream(one):
            click.echo(escape_controls(shorten_times(f"{name}: {line}")))
    return 0


def _format_rate(one: Mapping[str, Any], way: str) -> str:
    """Return a rate of a stream; of an older service, or where nobody knows it, a dash."""
    rate = one.get(f"{way}_rate")
    if rate is None:
        return "–"
    return f"{rate:.1f}" if 0 < rate < 10 else f"{rate:,.0f}"


def _format_lag(one: Mapping[str, Any]) -> str:
    """Return how many messages wait, and the partition of Kafka in which most of them do."""
    lag, worst = one.get("kafka_lag"), one.get("kafka_lag_worst")
    if lag is None:
        lag = one.get("backlog")
    if not lag or not worst:
        return "–" if lag is None else f"{lag:,.0f}"
    return f"{lag:,.0f} ({worst['topic']}/{worst['partition']}: {worst['lag']:,.0f})"


def _name_condition(one: Mapping[str, Any]) -> str:
    """Return the condition of a stream in a word or two; of an older service its state."""
    condition = one.get("condition")
    return one["state"] if condition is None else str(condition["name"]).replace("_", " ")


def describe_stream(one: Mapping[str, Any]) -> Iterator[str]:
    """Return what somebody has to know of a stream beside its figures, in lines.

    Args:
        one: the stream, as `GET /streams` has it.
    """
    condition = one.get("condition") or {}
    error = condition.get("error") or one["reason"]
    if (error or condition.get("phase")) and condition.get("name") != "refused":
        text = condition.get("text", "")
        place = condition.get("path", "")
        label = f" ({condition['label']})" if condition.get("label") else ""
        where = f"at {place}{label}" if place else ""
        yield "; ".join(part for part in (text, where) if part) + (f": {error}" if error else "")
    if condition.get("sample"):
        yield f"message: {condition['sample']}"
    rejected = one.get("rejected")
    if rejected and condition.get("name") != "degraded":
        yield _describe_rejected(rejected)
    yield from map(_describe_table, one.get("tables", ()))
    yield from _describe_refusal(one.get("refusal"))
    yield from _describe_expectations(one.get("expectations") or ())


def _describe_table(table: Mapping[str, Any]) -> str:
    """Return the text about the newest commit of a table."""
    newest = table["commits"][0]
    counts = [f"{newest['rows']:,} rows"] if newest["rows"] is not None else []
    counts += [f"{newest['files']:,} files", f"{newest['bytes']:,} bytes"]
    tries = f"{table['retries']:,} retries and {table['conflicts']:,} conflicts in this run"
    return (
        f"{table['table']}: {newest['operation']} {newest['version']} at {newest['at']}, "
        f"{', '.join(counts)}; {tries}"
    )


def _describe_rejected(one: Mapping[str, Any]) -> str:
    """Return the text about the rejected message that waits for longest."""
    times = f"{one['tries']} time{'s' * (one['tries'] != 1)}"
    return (
        f"a message has been rejected {times} since {one['since']} by {one['path']} "
        f"({one['reason']}): {one['error']}"
    )


def _describe_refusal(refusal: Mapping[str, Any] | None) -> Iterator[str]:
    """Return the lines about a file that was refused: which, and why."""
    if refusal:
        yield f"{refusal['text']} (since {refusal['since']})"
        yield from (f"  {finding}" for finding in refusal["findings"])


def _describe_expectations(expectations: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Return the lines about expectations that have failed: how often, of how many."""
    for one in expectations:
        if one["failed"]:
            total = one["passed"] + one["failed"]
            dropped = f", {one['dropped']:,} messages dropped" if one["dropped"] else ""
            where = one["label"] or one["path"]
            yield (
                f"expectation {one['expectation']} ({where}) failed {one['failed']:,} of "
                f"{total:,} times{dropped}"
            )


def _format_count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


@click.command("logs", short_help="Show the log of a stream of a service.")
@click.argument("stream_id", metavar="ID", shell_complete=complete_stream)
@click.option("-n", "--lines", type=click.IntRange(0), default=100, help="How many lines (100).")
@click.option("-f", "--follow", is_flag=True, help="Go on with the lines that come.")
@remote_options
def logs_cli(stream_id: str, lines: int, follow: bool, **service: Any) -> int:
    """Show the newest lines of a stream's log."""
    remote = ServiceClient(**service)
    query = {"lines": str(lines)}
    while True:
        records = remote.request("GET", build_stream_path(stream_id, "logs"), query=query)
        for line in records:
            fields = "".join(f" {name}={value}" for name, value in line["fields"].items())
            click.echo(
                escape_controls(
                    f"{shorten_times(line['time'])} {line['level']} {line['msg']}{fields}"
                )
            )
        if not follow:
            return 0
        if records:
            query = {"after": str(records[-1]["number"])}
        time.sleep(_POLL_INTERVAL_S)


def _format_seconds(seconds: float) -> str:
    return format_duration(int(seconds) * SECOND)
